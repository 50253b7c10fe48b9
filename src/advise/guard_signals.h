// The signals that end guards: SIGSEGV (a closed page), SIGSYS (a system call) and SIGTRAP (a
// breakpoint, or the one instruction that was let pass beside a buffer). The handlers stay in place
// when the last guard has ended, since another thread's fault may be on its way. A fault that is
// not a guard's ends all guards, gives the application its handlers back, and happens again; so
// does every call that sets a handler.
#pragma once

namespace weft::advise {

// Both need the lock.
void catch_signals();
void give_signals_back();
// Returns false if a handler of the application's blocks a guard's signals, which would then kill
// it.
bool handlers_open();

}  // namespace weft::advise
