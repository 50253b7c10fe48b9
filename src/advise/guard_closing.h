// A thread of the advisor write-protects send buffers again after each write, which shows when they
// were last written.
#pragma once

#include "advise/guard_slots.h"

namespace weft::advise {

// Sets the times at which the pages of a written send buffer are closed again. Needs the guards'
// lock.
void plan_closing(Guard& guard);
// Runs the thread that closes pages; it never returns.
void close_what_was_written();
// Pauses or resumes the thread around a fork: it must hold no lock then, since the child would find
// the lock held.
void closing_pauses(bool yes);

}  // namespace weft::advise
