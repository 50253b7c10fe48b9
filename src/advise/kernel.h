// Makes system calls directly, and dispatches those of the application to a handler. System calls
// fail if they are given memory that is guarded. Linux' Syscall User Dispatch hands them over
// first, without privileges, except those from a range of code that holds direct() and the return
// from our handlers.
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

// Returns the kernel's result: a negative number is an error.
long direct(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

using Selector = std::atomic<char>;
static_assert(sizeof(Selector) == 1 && Selector::is_always_lock_free);
inline constexpr char kAllow = 0, kBlock = 1;

// Makes the kernel dispatch this thread's system calls while *selector says so.
bool dispatch(Selector* selector);
void dispatch_no_more();

// Returns the time of now_ns() without a system call that might be dispatched.
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
// Returns an action for one of our handlers: it blocks all signals and returns through our own
// code.
Action own_action(void (*handler)(int, siginfo_t*, void*));

// Return this thread's blocked signals, or change them.
std::uint64_t blocked();
std::uint64_t block_all();
void block_these(std::uint64_t mask);

}  // namespace weft::advise::kernel
