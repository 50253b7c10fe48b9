// Holds the table of watched buffers (guards), the lock that orders all changes to it (class
// Locked), and the functions that stop watching a buffer. They are used by the code that begins to
// watch a buffer, by the signal handlers, and by the thread that protects pages of send buffers
// again. While the lock is held, the thread blocks all signals and uses only the advisor's own
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
// After this number of accesses to other memory on a watched buffer's first or last page, these
// pages are no longer watched.
inline constexpr int kNeighbours = 16;
// The largest number of bytes that one instruction may access.
inline constexpr std::size_t kAccess = 64;
inline constexpr std::int64_t kLongest = INT64_C(10'000'000'000);
inline constexpr std::int64_t kInCall = INT64_MAX;

// Estimates of the time that it takes to notice an access to a watched buffer, that is, from the
// return of the MPI call to the clock reading in the signal handler, if the access follows at once.
struct Cost {
  std::int64_t least_ns = 0;  // lower estimate in ns
  std::int64_t most_ns = 0;   // upper estimate in ns
};
// The time that it takes to notice an access by page protection (fault_cost) and by a breakpoint.
// measure_cost() sets both.
extern Cost fault_cost, breakpoint_cost;

// Identifies an instruction of the program by the address behind it. A function such as memcpy()
// keeps no stack frame; in that case `returns_to` is the return address of the function.
struct Instruction {
  std::uintptr_t address = 0, returns_to = 0;  // 0 if unknown
};

struct Guard {
  bool live;
  // True for a send buffer that may be sent again. Only writes to it are noticed.
  bool sent;
  bool read_only;  // true for a buffer in flight that MPI only reads
  bool small;      // true if a breakpoint watches the buffer
  bool loose;      // true once pages that hold other memory, too, are no longer watched
  bool in_call;    // true while the call that filled the result has not returned
  int flight;      // number of the operation in flight (check.h); 0 if none
  Site* site;
  std::uintptr_t begin, end;   // address range of the buffer
  std::uintptr_t first, last;  // address range of its pages
  int breakpoint;              // file descriptor of the breakpoint; -1 if pages are protected
  int neighbours;
  std::int64_t unseen_ns;  // time since which accesses may have been missed; 0 if none
  std::int64_t set_ns;
  // The time in ns since set_ns that the program lost by accesses to other memory on the guarded
  // pages.
  std::int64_t lost_ns;
  // True while a send buffer's pages are writable after a write. This and the following fields are
  // used only for send buffers.
  bool open;
  // The time of the latest known write, which unnoticed writes may have followed; 0 if there was
  // none.
  std::int64_t wrote_ns;
  Instruction writer;      // the instruction of the latest known write
  std::int64_t closed_ns;  // the buffer has not been written since this time
  // pause_ns: the time from a write to protecting the pages again. not_before_ns: the earliest time
  // for that; kInCall while a system call may be writing the buffer.
  std::int64_t pause_ns, not_before_ns;
  // The number of times that the pages were protected long before the last write was to be
  // expected.
  int early;
  // Copy of the buffer's first bytes, made before an instruction accesses memory just before the
  // buffer.
  unsigned char start[kAccess];

  bool has(std::uintptr_t address) const { return address >= begin && address < end; }
  bool covers(std::uintptr_t address) const {
    return breakpoint < 0 && address >= first && address < last;
  }
  // Return whether the buffer's first (last) page also holds other memory, and is still watched.
  bool shares_first() const { return !loose && begin != first; }
  bool shares_last() const { return !loose && end != last; }
  bool near_stack(std::uintptr_t pointer) const {
    return breakpoint < 0 && pointer + kPage > first && pointer < last + kPage;
  }
  bool shares_pages() const { return breakpoint < 0 && (shares_first() || shares_last()); }
  // Returns whether the buffer's pages are made accessible while a thread is inside MPI. This
  // includes those of send buffers, since the program may free a send buffer, and the MPI library
  // may get the memory.
  bool opens_in_mpi() const { return sent || flight || shares_pages(); }
  bool is_right_before(std::uintptr_t address) const {
    return address < begin && begin - address < kAccess;
  }
  std::size_t start_bytes() const { return std::min<std::size_t>(kAccess, end - begin); }
  int closed() const { return sent || read_only ? PROT_READ : PROT_NONE; }
  std::int64_t due_ns() const { return std::max(wrote_ns + pause_ns, not_before_ns); }
};

extern Guard guards[kGuards];
// The number of watched buffers. Threads set Thread::may_block before they read this number, and
// set() raises it before it reads may_block, both with sequentially consistent order.
extern std::atomic<int> live;
inline bool guards_exist() {
  return live.load() > 0;
}
extern std::atomic_flag lock_flag;
// True while the advisor's thread protects pages of send buffers; class StackInUse waits until it
// is false.
extern std::atomic<bool> closing;
extern std::atomic<std::uint32_t> bell;  // futex that wakes the advisor's thread

// Returns whether any thread of the application is inside MPI.
bool any_in_mpi();
void select_own(Thread& me);
bool protect(std::uintptr_t first, std::uintptr_t last, int protection);
void open_pages(std::uintptr_t first, std::uintptr_t last);
// protect_shared() changes the protection of those pages of a watched buffer that are accessible
// inside MPI; close_inner() protects its other pages. Both return false if the system refuses.
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

// The lock of class Locked must be held when this function or a following one is called.
void end_guard(Guard& guard);
void note_unknown(Site& site, bool sent, Unknown why);
void unseen(Guard& guard, Unknown why);
void all_unseen(Unknown why);
void unseen_near_stack(const Thread& me);
// The part of a measured interval in which the buffer was certainly not accessed. keep() records an
// interval; its argument `by` is the instruction that accessed the receive buffer or wrote the send
// buffer.
struct Span {
  std::int64_t began_ns, ended_ns;
};
void keep(Site& site, What side, Bounds bounds, Span proven, Instruction by);
// This function is called at the first access to a watched buffer of an operation in flight;
// check.cc sets it. begin: the first watched byte. It must not block, since it may run in a signal
// handler and the lock of class Locked is held.
extern void (*touched_in_flight)(int flight, std::uintptr_t begin, Instruction by);

// Records the interval up to the first access to a receive buffer, and stops watching the buffer.
// cost: how long it took to notice this access.
void touched(Guard& guard, std::int64_t when_ns, Instruction by, Cost cost = {});
void misses(Guard& guard);
void loosen(Guard& guard);
// Records when a send buffer was written for the first time after its call. It must be called
// before `wrote_ns` is set.
void note_first_write(const Guard& guard, std::int64_t when_ns);
void written(Guard& guard, std::int64_t when_ns, Instruction by);
void is_closed(Guard& guard, std::int64_t since_ns);
// Wakes the advisor's thread, so that it checks which send buffers must be protected again.
void ring();

// While an object of this class exists, the pages near this thread's stack pointer stay accessible.
// It is needed while the thread blocks signals, since a fault on its own stack would then kill the
// program. The thread stores its stack pointer before it makes the pages accessible, and the
// advisor's thread sets `closing` before it reads the stack pointers, so that one of them sees the
// other. If a signal handler creates a nested object, the outer one remains in charge.
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

// Holds the lock of the table of watched buffers, with all signals of this thread blocked. The
// redirection of the thread's system calls is switched off after the lock has been taken, because
// the previous holder may have switched it on.
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
    // Only CPU time is counted, since other threads may have run on the core meanwhile.
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
