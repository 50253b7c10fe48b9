// Handles the signals by which the advisor notices accesses to watched buffers: SIGSEGV (access to
// a protected page), SIGSYS (a redirected system call) and SIGTRAP (a breakpoint, or a single step
// after an access beside a buffer). The handlers remain after the last buffer has been given up,
// since a fault of another thread may still arrive. A fault on another address is the application's
// own: all buffers are given up, the application's handlers are restored, and the instruction is
// repeated. All buffers are also given up when the application sets a handler for one of these
// signals.
#pragma once

namespace weft::advise {

// catch_signals() installs the advisor's signal handlers, and give_signals_back() removes them. The
// lock of class Locked must be held.
void catch_signals();
void give_signals_back();
// Returns whether no signal handler of the application blocks SIGSEGV, SIGSYS or SIGTRAP while it
// runs. If one did, an access to a protected page in it would kill the program.
bool handlers_open();

}  // namespace weft::advise
