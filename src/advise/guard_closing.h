// Closes send buffers for writes again after each write, by a thread of the advisor's, which shows
// when they were last written.
#pragma once

#include "advise/guard_slots.h"

namespace weft::advise {

// Sets when the guard is closed again. Needs the lock.
void plan_closing(Guard& guard);
// Runs the thread; it never returns.
void close_what_was_written();
// Around a fork the thread must hold no lock, which the child would find held.
void closing_pauses(bool yes);

}  // namespace weft::advise
