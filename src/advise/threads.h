// The threads of this process, with what decides whether memory may be guarded. A guard affects all
// threads: one that blocks the signals of a guard, or whose system calls are not dispatched, would
// fail where it would not without the advisor.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "advise/kernel.h"

namespace weft::advise {

inline constexpr int kThreads = 256;

// A piece of memory that the kernel may write without a system call.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool meets(std::uintptr_t first, std::uintptr_t last) const {
    return first < end && begin < last;
  }
};

// Is written by the thread itself, except for `selector`, which guards set.
struct Thread {
  std::atomic<bool> used{false};
  kernel::Selector selector{kernel::kAllow};
  bool of_library = false;  // started inside MPI, or by the advisor
  bool watcher = false;     // the advisor's own
  std::atomic<bool> dispatched{
      false};                         // the kernel hands its system calls over when `selector` says
  std::atomic<int> inside{0};         // MPI calls that it is in
  std::atomic<bool> may_block{true};  // it blocks, or may be about to block, signals of a guard
  Range stack;
  Range signal_stack;           // the application's alternate one
  void* spare_stack = nullptr;  // ours, for handlers, where it has none; kept for the next thread
  std::uintptr_t control = 0;   // where its thread pointer points
  pid_t number = 0;             // the kernel's
  std::atomic<std::uintptr_t> stack_in_use{0};  // while it blocks signals for a guard; or 0
  // These are used while one instruction accesses memory beside a buffer.
  std::uintptr_t opened_page = 0;
  std::int64_t opened_ns = 0;
  std::uintptr_t late_fault = 0;  // the last that another thread had dealt with before
};

extern Thread threads[kThreads];
extern std::atomic<int> threads_met;  // so many records have been used
inline std::span<Thread> known_threads() {
  return {threads, static_cast<std::size_t>(threads_met.load())};
}
// Is true once the application has had a thread besides the one that called MPI_Init.
extern std::atomic<bool> several;

// The signals that guards need.
inline constexpr std::uint64_t kGuardSignals =
    kernel::bit(SIGSEGV) | kernel::bit(SIGSYS) | kernel::bit(SIGTRAP);

// Is called before a thread's record is given up; nullptr: nothing is done.
extern std::atomic<void (*)()> before_a_thread_leaves;

// This thread's record; nullptr if the thread is not known or there is no room for it.
extern constinit thread_local Thread* own_record __attribute__((tls_model("initial-exec")));
inline Thread* this_record() {
  return own_record;
}
// Registers this thread. Returns false if its system calls cannot be dispatched.
bool know_this_thread(bool of_library);
// Dispatches this thread's system calls from now on. While it is the application's only thread and
// there is no guard, rest_own() switches that off, since dispatch slows every system call.
bool dispatch_own(Thread& me);
void rest_own(Thread& me);
// Returns whether the thread's handlers would run on the advisor's stack for them.
bool on_spare_stack(const Thread& thread);
// The application's stack for handlers, or else one of the advisor's: the thread has one from now
// on.
void find_signal_stack(Thread& thread);
// Starts the advisor's own thread, which takes no signals and touches none of the program's memory.
bool start_watcher(void (*work)());
// Returns whether all threads that the kernel counts are known and dispatched, and none blocks a
// signal of a guard.
bool all_known_and_open();
// Returns whether [begin, end) holds a part of some thread's stack or control block.
bool of_a_thread(std::uintptr_t begin, std::uintptr_t end);

// Returns whether another thread may be in a system call on memory in [begin, end) that began
// before calls were dispatched. A running thread counts as such: the kernel only tells of sleeping
// ones.
bool in_calls_elsewhere(std::uintptr_t begin, std::uintptr_t end);

}  // namespace weft::advise
