// Makes system calls directly, and dispatches those of the application to a handler: a system call
// fails if its memory is guarded. Linux' Syscall User Dispatch does so without privileges. It
// exempts one range of code, which holds direct() and the return from the advisor's handlers.
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

// Makes the system call `number` without the C library. Returns the kernel's result, which is
// negative if the call failed.
long direct(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

using Selector = std::atomic<char>;
static_assert(sizeof(Selector) == 1 && Selector::is_always_lock_free);
inline constexpr char kAllow = 0, kBlock = 1;

// Makes the kernel dispatch this thread's system calls to the handler of SIGSYS while *selector is
// kBlock. Returns false if the kernel cannot do so, otherwise true.
bool dispatch(Selector* selector);
void dispatch_no_more();

// Returns the time as now_ns() does, but makes no system call that might be dispatched.
std::int64_t clock_ns();

// A signal's handling in the kernel's format.
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
// Returns the action for one of the advisor's handlers. The handler blocks all signals and returns
// through the advisor's own code.
Action own_action(void (*handler)(int, siginfo_t*, void*));

// blocked() returns this thread's blocked signals. block_all() returns them too, and then blocks
// all. block_these() blocks exactly those of `mask`.
std::uint64_t blocked();
std::uint64_t block_all();
void block_these(std::uint64_t mask);

}  // namespace weft::advise::kernel
