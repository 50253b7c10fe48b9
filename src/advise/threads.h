// Lists the threads of this process, with the facts that decide whether pages may be protected. A
// protected page concerns all threads. A thread would fail when it accesses the page if it blocks
// SIGSEGV, or if its system calls are not redirected to the advisor.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "advise/kernel.h"

namespace weft::advise {

inline constexpr int kThreads = 256;

// An address range of a thread's stack or signal stack, which the kernel may write at any time, not
// only in system calls.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool meets(std::uintptr_t first, std::uintptr_t last) const {
    return first < end && begin < last;
  }
};

// Holds the advisor's data about one thread. Only the thread itself changes it, except for
// `selector`, which changes when a buffer begins or ends being watched.
struct Thread {
  std::atomic<bool> used{false};
  kernel::Selector selector{kernel::kAllow};
  bool of_library = false;  // true for threads that the MPI library or the advisor has started
  bool watcher = false;     // true for the advisor's own thread
  // True if the kernel redirects this thread's system calls to the advisor whenever `selector` is
  // kBlock.
  std::atomic<bool> dispatched{false};
  std::atomic<int> inside{0};  // how many MPI calls the thread is in, one inside the other
  // True if the thread blocks a signal that accesses to watched buffers raise, or may be about to.
  std::atomic<bool> may_block{true};
  Range stack;
  Range signal_stack;  // the alternate signal stack that the application has set
  // The alternate signal stack that the advisor has allocated, if the application has set none. The
  // next thread that gets this record reuses it.
  void* spare_stack = nullptr;
  std::uintptr_t control = 0;  // address of the thread control block
  pid_t number = 0;            // the kernel's thread ID
  // The thread's stack pointer while it blocks signals to use the table of watched buffers (class
  // StackInUse); otherwise 0.
  std::atomic<std::uintptr_t> stack_in_use{0};
  // opened_page: a page of a watched buffer that was made accessible for one instruction of this
  // thread; 0 if there is none. opened_ns: when it was made accessible.
  std::uintptr_t opened_page = 0;
  std::int64_t opened_ns = 0;
  // The address of the last fault that another thread had already handled.
  std::uintptr_t late_fault = 0;
};

extern Thread threads[kThreads];
extern std::atomic<int> threads_met;  // number of entries of `threads` that were ever used
inline std::span<Thread> known_threads() {
  return {threads, static_cast<std::size_t>(threads_met.load())};
}
// True once the application has had more than one thread.
extern std::atomic<bool> several;

// The set of signals by which the advisor notices accesses to watched buffers.
inline constexpr std::uint64_t kGuardSignals =
    kernel::bit(SIGSEGV) | kernel::bit(SIGSYS) | kernel::bit(SIGTRAP);

// This function is called before a thread's record is released. It may be nullptr.
extern std::atomic<void (*)()> before_a_thread_leaves;

// The record of the calling thread; nullptr if the thread is not registered.
extern constinit thread_local Thread* own_record __attribute__((tls_model("initial-exec")));
inline Thread* this_record() {
  return own_record;
}
// Registers this thread. Returns false if its system calls cannot be redirected, or if there are
// too many threads. of_library: whether the MPI library has started the thread.
bool know_this_thread(bool of_library);
// dispatch_own() makes the kernel redirect this thread's system calls to the advisor from now on,
// and returns whether it does. rest_own() ends this, because the redirection slows down every
// system call. rest_own() may be called only if this is the application's only thread and no buffer
// is watched.
bool dispatch_own(Thread& me);
void rest_own(Thread& me);
// Returns whether the thread's signal handlers would run on the stack that the advisor has
// allocated.
bool on_spare_stack(const Thread& thread);
// Finds the thread's alternate signal stack. If there is none, sets one that the advisor allocates.
void find_signal_stack(Thread& thread);
// Starts the advisor's own thread, which takes no signals and does not access the program's memory.
// Returns false if that fails.
bool start_watcher(void (*work)());
// Returns whether it is safe to protect pages: all threads of the process are registered, have
// their system calls redirected to the advisor, and block none of kGuardSignals.
bool all_known_and_open();
// Returns whether any part of [begin, end) belongs to a thread's stack, signal stack or control
// block.
bool of_a_thread(std::uintptr_t begin, std::uintptr_t end);

// Returns whether another thread may be in a system call on memory in [begin, end), which began
// before system calls were redirected. Returns true also for a thread that is running, since the
// kernel tells the system call only of sleeping threads.
bool in_calls_elsewhere(std::uintptr_t begin, std::uintptr_t end);

}  // namespace weft::advise
