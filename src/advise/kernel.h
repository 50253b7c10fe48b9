// Makes system calls without the C library, and redirects the application's system calls to a
// signal handler of the advisor (Syscall User Dispatch of Linux). The advisor protects pages of
// buffers, and a system call on such a page would fail. One range of code is exempt from the
// redirection; it contains direct(), and the return from the advisor's signal handlers.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace weft::advise::kernel {

#if defined(__x86_64__)
inline constexpr bool kCanGuard = true;
#else
inline constexpr bool kCanGuard = false;
#endif

// Makes the system call `number` without the C library. Returns the kernel's result; a negative
// error number if the call fails.
long direct(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

using Selector = std::atomic<char>;
static_assert(sizeof(Selector) == 1 && Selector::is_always_lock_free);
inline constexpr char kAllow = 0, kBlock = 1;

// Makes the kernel redirect this thread's system calls to the advisor's handler of SIGSYS whenever
// *selector is kBlock. Returns false if the kernel does not support this.
bool dispatch(Selector* selector);
void dispatch_no_more();

// Returns the same time as now_ns(), without a system call that might be redirected.
std::int64_t clock_ns();

// The handler of a signal with its flags and mask, in the kernel's format.
struct Action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};
inline constexpr std::uint64_t bit(int signal) {
  return UINT64_C(1) << (signal - 1);
}
bool get_action(int signal, Action* action);
void set_action(int signal, const Action& action);
// Returns the Action for a signal handler of the advisor. The handler runs with all signals
// blocked, and returns through code that is exempt from redirection.
Action own_action(void (*handler)(int, siginfo_t*, void*));

// blocked() returns the signals that this thread blocks. block_all() blocks all signals, and
// returns those that were blocked before. block_these() blocks exactly the signals in `mask`.
std::uint64_t blocked();
std::uint64_t block_all();
void block_these(std::uint64_t mask);

}  // namespace weft::advise::kernel
