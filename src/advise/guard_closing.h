// Runs a thread that write-protects the pages of send buffers again after the program has written
// to them. This shows when a buffer was last written.
#pragma once

#include "advise/guard_slots.h"

namespace weft::advise {

// Sets the times at which the pages of a written send buffer are protected again. The guards' lock
// must be held.
void plan_closing(Guard& guard);
// The function of the thread that protects written pages again. It never returns.
void close_what_was_written();
// Pauses (true) or resumes (false) the thread. It must be paused around a fork, because the child
// would find any lock that the thread holds locked forever.
void closing_pauses(bool yes);

}  // namespace weft::advise
