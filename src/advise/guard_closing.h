// What is sent is closed for writes again after each write, by a thread of the advisor's: so it is
// known when it was written last.
#pragma once

#include "advise/guard_slots.h"

namespace weft::advise {

// With the lock held: when the guard is to be closed again.
void plan_closing(Guard& guard);
// The thread's work; it never returns.
void close_what_was_written();
// Around a fork that thread holds no lock, which a child would find held.
void closing_pauses(bool yes);

}  // namespace weft::advise
