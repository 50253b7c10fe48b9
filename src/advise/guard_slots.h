// Holds the table of active guards, the lock that orders all changes to it, and the ways in which a
// guard may end. The code that sets guards, the signal handlers and the thread that closes pages
// share this file. The holder of the lock has all signals blocked and uses only the advisor's own
// memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "advise/guard_budget.h"
#include "advise/kernel.h"
#include "advise/record.h"
#include "advise/threads.h"
#include "base/clock.h"

namespace weft::advise {

inline constexpr std::uintptr_t kPage = 4096;
inline constexpr int kGuards = 8;
// Number of accesses beside a buffer after which the pages that it shares with other data stay
// open.
inline constexpr int kNeighbours = 16;
inline constexpr std::size_t kAccess = 64;  // most bytes that one instruction may access
inline constexpr std::int64_t kLongest = INT64_C(10'000'000'000);
inline constexpr std::int64_t kInCall = INT64_MAX;

// The cost in ns of observing an access, from the end of the call to the handler's reading of the
// clock.
struct Cost {
  std::int64_t least_ns = 0;  // least time
  std::int64_t most_ns = 0;   // usual time
};
// The costs of observing an access by closed pages and by a breakpoint, as measured (guard_cost.h).
extern Cost fault_cost, breakpoint_cost;

// Identifies an instruction of the program by the address after it. If its function keeps no frame,
// as memcpy, the function's return address is stored, too.
struct Instruction {
  std::uintptr_t address = 0, returns_to = 0;  // 0: unknown
};

struct Guard {
  bool live;
  // True for a buffer that was sent and may be sent again: only writes are watched (guard_sent()).
  bool sent;
  bool read_only;  // a buffer in flight that MPI only reads
  bool small;      // true if a breakpoint watches the buffer
  bool loose;      // the pages that it shares with other data are no longer watched
  bool in_call;    // a result whose call has not returned yet: watching begins then
  int flight;      // the number of the operation in flight (check.h); 0: none
  Site* site;
  std::uintptr_t begin, end;   // address range of the buffer
  std::uintptr_t first, last;  // address range of the pages that contain it
  int breakpoint;              // descriptor of the breakpoint; -1: pages are closed instead
  int neighbours;
  std::int64_t unseen_ns;  // time from which accesses may have been missed; 0: none
  std::int64_t set_ns;
  std::int64_t lost_ns;  // time spent on permitted accesses beside the buffer since set_ns
  // This field and the following ones are for send buffers. True while the buffer's pages are open
  // after a write, until due_ns() has come.
  bool open;
  std::int64_t wrote_ns;  // time of the latest known write, which others may have followed; 0: none
  Instruction writer;     // instruction that wrote at wrote_ns
  std::int64_t closed_ns;  // time since which the buffer has not been written
  // Time from a write to the closing of the pages, and the earliest time of that closing; the
  // latter is kInCall while a system call may be writing the buffer.
  std::int64_t pause_ns, not_before_ns;
  int early;                     // number of closings long before the last write is expected
  unsigned char start[kAccess];  // the buffer's first bytes before an access right before it

  bool has(std::uintptr_t address) const { return address >= begin && address < end; }
  bool covers(std::uintptr_t address) const {
    return breakpoint < 0 && address >= first && address < last;
  }
  // Return whether the first or the last page holds other memory too, and is still watched.
  bool shares_first() const { return !loose && begin != first; }
  bool shares_last() const { return !loose && end != last; }
  bool near_stack(std::uintptr_t pointer) const {
    return breakpoint < 0 && pointer + kPage > first && pointer < last + kPage;
  }
  bool shares_pages() const { return breakpoint < 0 && (shares_first() || shares_last()); }
  // Returns whether the pages are opened while a thread is in MPI. Those of send buffers are, since
  // such a buffer may be freed and become the MPI library's memory.
  bool opens_in_mpi() const { return sent || flight || shares_pages(); }
  bool is_right_before(std::uintptr_t address) const {
    return address < begin && begin - address < kAccess;
  }
  std::size_t start_bytes() const { return std::min<std::size_t>(kAccess, end - begin); }
  int closed() const { return sent || read_only ? PROT_READ : PROT_NONE; }
  std::int64_t due_ns() const { return std::max(wrote_ns + pause_ns, not_before_ns); }
};

extern Guard guards[kGuards];
// Number of live guards; seq_cst: see Thread::may_block and leave_mpi().
extern std::atomic<int> live;
inline bool guards_exist() {
  return live.load() > 0;
}
extern std::atomic_flag lock_flag;
extern std::atomic<bool> closing;  // true while the advisor's thread closes pages: see StackInUse
extern std::atomic<std::uint32_t> bell;  // futex that wakes that thread

// Returns whether a thread of the application is in MPI.
bool any_in_mpi();
void select_own(Thread& me);
bool protect(std::uintptr_t first, std::uintptr_t last, int protection);
void open_pages(std::uintptr_t first, std::uintptr_t last);
// Change the protection of a guard's pages. protect_shared() changes those that are open inside
// MPI; close_inner() closes the others.
bool protect_shared(const Guard& guard, int protection);
bool close_inner(const Guard& guard);
void yield();
bool other_threads();
inline void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}
inline std::uintptr_t stack_pointer() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

// This function and the following ones need the guards' lock.
void end_guard(Guard& guard);
void note_unknown(Site& site, bool sent, Unknown why);
void unseen(Guard& guard, Unknown why);
void all_unseen(Unknown why);
void unseen_near_stack(const Thread& me);
// The proven part of an interval. keep() also takes `by`, the instruction that accessed the result
// or wrote the buffer last.
struct Span {
  std::int64_t began_ns, ended_ns;
};
void keep(Site& site, What side, Bounds bounds, Span proven, Instruction by);
// Is called at the first access to the guarded buffer of an operation in flight (check.cc). begin:
// the guard's first byte. It must not block: the guards' lock is held, perhaps in a signal handler.
extern void (*touched_in_flight)(int flight, std::uintptr_t begin, Instruction by);

// Ends the guard of a result at its first access. cost: the part of the time that the observation
// took.
void touched(Guard& guard, std::int64_t when_ns, Instruction by, Cost cost = {});
void misses(Guard& guard);
void loosen(Guard& guard);
// Records the first write of a send buffer since its call. Must be called before wrote_ns is set.
void note_first_write(const Guard& guard, std::int64_t when_ns);
void written(Guard& guard, std::int64_t when_ns, Instruction by);
void is_closed(Guard& guard, std::int64_t since_ns);
// Wakes the thread that closes pages, so that it checks which guards are due.
void ring();

// StackInUse: while it exists, the pages near this thread's stack pointer stay open. It is used
// while the thread blocks signals, since it could not open the pages in a handler then. The thread
// first publishes its stack pointer and then opens the pages. The closing thread first publishes
// that it closes pages and then checks. If a handler interrupts such a section, the outer object
// stays in charge.
class StackInUse {
 public:
  explicit StackInUse(Thread* me)
      : me_(me && !me->watcher && me->stack_in_use.load() == 0 ? me : nullptr) {
    if (!me_) return;
    me_->stack_in_use = stack_pointer();
    while (closing.load()) yield();
    for (const Guard& guard : guards)
      if (guard.live && guard.near_stack(stack_pointer())) open_pages(guard.first, guard.last);
  }
  ~StackInUse() {
    if (me_) me_->stack_in_use = 0;
  }
  StackInUse(const StackInUse&) = delete;
  StackInUse& operator=(const StackInUse&) = delete;

 private:
  Thread* const me_;
};

// Holds the lock, with this thread's signals blocked. The thread's system calls are let through
// after it has the lock, since the previous holder may have switched their dispatch.
class Locked {
 public:
  Locked() : me_(this_record()), stack_(me_), mask_(kernel::block_all()) {
    constexpr int kPatience = 1000;
    for (int i = 0; lock_flag.test_and_set(std::memory_order_acquire); ++i)
      if (i > kPatience) yield();
    if (me_) me_->selector = kernel::kAllow;
    began_ns_ = processor_ns(CLOCK_THREAD_CPUTIME_ID);
    if (me_) unseen_near_stack(*me_);
  }
  ~Locked() {
    // Only CPU time is counted, since other threads may have had the core.
    const std::int64_t passed_ns = processor_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns_;
    spent_ns.fetch_add(passed_ns, std::memory_order_relaxed);
    lock_flag.clear(std::memory_order_release);
    if (me_) select_own(*me_);
    kernel::block_these(mask_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  std::uint64_t mask() const { return mask_; }

 private:
  Thread* const me_;
  const StackInUse stack_;
  const std::uint64_t mask_;
  std::int64_t began_ns_;
};

}  // namespace weft::advise
