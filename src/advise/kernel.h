// System calls made directly, and the dispatch of the application's own to a handler of ours.
// Why: memory that is guarded against its first touch makes system calls fail that are given it.
// Linux' Syscall User Dispatch hands them over first, without privileges, except those from a range
// of code: the one that holds direct() and the return from our handlers.
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

// As the kernel gives it: a negative number is an error.
long direct(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

using Selector = std::atomic<char>;
static_assert(sizeof(Selector) == 1 && Selector::is_always_lock_free);
inline constexpr char kAllow = 0, kBlock = 1;

// From now on system calls of this thread are dispatched while *selector says so.
bool dispatch(Selector* selector);
void dispatch_no_more();

// The time of now_ns(), without a system call that may be dispatched.
std::int64_t clock_ns();

// What the kernel knows of a signal's handling.
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
// One of ours: it holds all signals back, and returns by our own code.
Action own_action(void (*handler)(int, siginfo_t*, void*));

// This thread's blocked signals.
std::uint64_t blocked();
std::uint64_t block_all();
void block_these(std::uint64_t mask);

}  // namespace weft::advise::kernel
