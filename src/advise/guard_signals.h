// Handles the signals by which guards notice accesses: SIGSEGV (access to a protected page), SIGSYS
// (a redirected system call) and SIGTRAP (a breakpoint, or a single step after an access beside a
// buffer). The handlers remain after the last guard has ended, since a fault of another thread may
// still arrive. A fault that no guard has caused is the application's own: all guards end, the
// application's handlers are restored, and the instruction is repeated. All guards also end when
// the application sets a handler for one of these signals.
#pragma once

namespace weft::advise {

// Install and remove the signal handlers. The guards' lock must be held.
void catch_signals();
void give_signals_back();
// Returns whether no signal handler of the application blocks a signal that guards use. If such a
// signal were raised while it is blocked, the kernel would kill the program.
bool handlers_open();

}  // namespace weft::advise
