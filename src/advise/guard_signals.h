// The signals that end guards: SIGSEGV (a closed page), SIGSYS (a system call) and SIGTRAP (a
// breakpoint, or the one instruction that was let pass beside a buffer). The handlers stay in place
// when the last guard has ended, since another thread's fault may be on its way. A fault that is
// not a guard's ends all guards, gives the application its handlers back, and happens again; so
// does every call that sets a handler.
#pragma once

namespace weft::advise {

// With the lock held.
void catch_signals();
void give_signals_back();
// False: a handler of the application's holds back a guard's signals, and would die of them.
bool handlers_open();

}  // namespace weft::advise
