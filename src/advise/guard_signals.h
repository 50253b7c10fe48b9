// Handles the signals that end guards: SIGSEGV (access to a closed page), SIGSYS (a system call)
// and SIGTRAP (a breakpoint, or a single step beside a buffer). The handlers stay in place after
// the last guard has ended, since another thread's fault may still arrive. A fault that no guard
// caused ends all guards, restores the application's handlers and is repeated. Every call that sets
// a handler likewise ends all guards.
#pragma once

namespace weft::advise {

// Install or remove the handlers. Both need the guards' lock.
void catch_signals();
void give_signals_back();
// Returns whether all of the application's handlers leave a guard's signals unblocked. A guard's
// signal that is blocked would kill the program.
bool handlers_open();

}  // namespace weft::advise
