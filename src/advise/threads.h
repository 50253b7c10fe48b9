// Lists the threads of this process, with the facts that decide whether memory may be guarded. A
// guard affects all threads. A thread that blocks the guard's signals, or whose system calls are
// not dispatched, would fail on it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "advise/kernel.h"

namespace weft::advise {

inline constexpr int kThreads = 256;

// An address range that the kernel may write without a system call.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool meets(std::uintptr_t first, std::uintptr_t last) const {
    return first < end && begin < last;
  }
};

// Holds what the advisor knows of one thread. Only the thread itself writes it, except for
// `selector`, which guards set.
struct Thread {
  std::atomic<bool> used{false};
  kernel::Selector selector{kernel::kAllow};
  bool of_library = false;  // started inside MPI, or by the advisor
  bool watcher = false;     // the advisor's own thread
  // True if the kernel passes the thread's system calls to the advisor while `selector` is kBlock.
  std::atomic<bool> dispatched{false};
  std::atomic<int> inside{0};         // nesting depth of MPI calls
  std::atomic<bool> may_block{true};  // it blocks a guard's signals, or may be about to
  Range stack;
  Range signal_stack;  // the application's alternate signal stack
  // The advisor's signal stack if the application set none; kept for the next thread.
  void* spare_stack = nullptr;
  std::uintptr_t control = 0;  // address of the thread control block
  pid_t number = 0;            // the kernel's thread ID
  // Stack pointer while the thread blocks signals because of a guard; otherwise 0.
  std::atomic<std::uintptr_t> stack_in_use{0};
  // Address of the page beside a buffer that is open for one instruction of this thread, and the
  // time at which it was opened.
  std::uintptr_t opened_page = 0;
  std::int64_t opened_ns = 0;
  // Address of the last fault that another thread had handled already.
  std::uintptr_t late_fault = 0;
};

extern Thread threads[kThreads];
extern std::atomic<int> threads_met;  // number of records ever used
inline std::span<Thread> known_threads() {
  return {threads, static_cast<std::size_t>(threads_met.load())};
}
// True once the application has had a thread besides the one that called MPI_Init.
extern std::atomic<bool> several;

// The signals that guards need.
inline constexpr std::uint64_t kGuardSignals =
    kernel::bit(SIGSEGV) | kernel::bit(SIGSYS) | kernel::bit(SIGTRAP);

// This function is called before a thread's record is released; nullptr if nothing is to be done.
extern std::atomic<void (*)()> before_a_thread_leaves;

// The record of the calling thread; nullptr if the thread is unknown or the table is full.
extern constinit thread_local Thread* own_record __attribute__((tls_model("initial-exec")));
inline Thread* this_record() {
  return own_record;
}
// Registers this thread. Returns true if its system calls can be dispatched to the advisor,
// otherwise false.
bool know_this_thread(bool of_library);
// dispatch_own() makes the kernel dispatch this thread's system calls to the advisor from now on,
// and returns whether it does. rest_own() ends that while this is the application's only thread and
// no guard exists, since dispatch slows every system call.
bool dispatch_own(Thread& me);
void rest_own(Thread& me);
// Returns whether signal handlers of the thread would run on the stack that the advisor allocated.
bool on_spare_stack(const Thread& thread);
// Finds the application's signal stack, or sets one of the advisor if there is none.
void find_signal_stack(Thread& thread);
// Starts the advisor's own thread, which takes no signals and accesses none of the program's
// memory.
bool start_watcher(void (*work)());
// Returns whether all threads that the kernel counts are registered, have their system calls
// dispatched to the advisor, and block none of a guard's signals.
bool all_known_and_open();
// Returns whether [begin, end) holds a part of some thread's stack or control block.
bool of_a_thread(std::uintptr_t begin, std::uintptr_t end);

// Returns whether another thread may be in a system call on memory in [begin, end) that began
// before system calls were dispatched. A running thread counts as such, since the kernel reports
// only those of sleeping threads.
bool in_calls_elsewhere(std::uintptr_t begin, std::uintptr_t end);

}  // namespace weft::advise
