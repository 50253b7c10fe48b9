// Runs a thread that write-protects the pages of send buffers again after the program has written
// to them. This shows when a buffer was last written.
#pragma once

#include "advise/guard_slots.h"

namespace weft::advise {

// Sets the times at which the pages of a written send buffer are protected again. The lock of class
// Locked must be held.
void plan_closing(Guard& guard);
// The function of the advisor's thread that protects the pages of send buffers again after writes.
// It never returns.
void close_what_was_written();
// Pauses (true) or resumes (false) the advisor's thread. It must be paused around a fork, because
// the child would find any lock that the thread holds locked forever.
void closing_pauses(bool yes);

}  // namespace weft::advise
