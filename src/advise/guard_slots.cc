// Changes the protection of watched buffers' pages, and records how watching a buffer ended.
#include "advise/guard_slots.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "advise/recorder.h"

namespace weft::advise {

void (*touched_in_flight)(int flight, std::uintptr_t begin, Instruction by) = nullptr;

Guard guards[kGuards];
std::atomic<int> live{0};
std::atomic_flag lock_flag;
std::atomic<bool> closing{false};
std::atomic<std::uint32_t> bell{0};

namespace {

std::uint64_t chance = 0x9e3779b97f4a7c15;

std::uint64_t random_number() {
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return chance;
}

}  // namespace

bool any_in_mpi() {
  for (const Thread& thread : known_threads())
    if (thread.used.load() && !thread.of_library && thread.inside.load() > 0) return true;
  return false;
}

// Sets whether this thread's system calls are redirected to the advisor. Another thread may switch
// the redirection on, after it has raised `live`. Therefore the condition is checked again after
// the value has been stored.
void select_own(Thread& me) {
  const auto wanted = [&] {
    return me.inside.load() == 0 && live.load() > 0 && !me.may_block.load();
  };
  bool block = false;
  do {
    block = wanted();
    me.selector = block ? kernel::kBlock : kernel::kAllow;
  } while (!block && wanted());
  // If this is the application's only thread, no other thread can begin to watch a buffer. The
  // kernel's redirection of system calls is then switched off altogether.
  if (live.load() == 0 && !several.load() && !me.of_library) rest_own(me);
}

void yield() {
  kernel::direct(SYS_sched_yield);
}

bool protect(std::uintptr_t first, std::uintptr_t last, int protection) {
  constexpr std::size_t kOneByOne = 33;  // if more pages change, Linux flushes the whole TLB
  if (last - first > kOneByOne * kPage) spent_ns.fetch_add(kRefill, std::memory_order_relaxed);
  return kernel::direct(SYS_mprotect, static_cast<long>(first), static_cast<long>(last - first),
                        protection) == 0;
}
void open_pages(std::uintptr_t first, std::uintptr_t last) {
  protect(first, last, PROT_READ | PROT_WRITE);
}

// Changes the protection of a watched buffer's first and last page, if they also hold other memory.
// Returns false if the system refuses.
bool protect_ends(const Guard& guard, int protection) {
  bool done = true;
  if (guard.shares_first()) done = protect(guard.first, guard.first + kPage, protection);
  if (guard.shares_last()) done = protect(guard.last - kPage, guard.last, protection) && done;
  return done;
}

// Changes the protection of those pages of a watched buffer that are accessible while a thread is
// inside MPI. Returns false if the system refuses.
bool protect_shared(const Guard& guard, int protection) {
  if (guard.sent || guard.flight) return protect(guard.first, guard.last, protection);
  return protect_ends(guard, protection);
}

// Protects those pages of a watched buffer that remain protected while a thread is inside MPI.
// Returns false if the system refuses.
bool close_inner(const Guard& guard) {
  if (guard.sent || guard.flight) return true;
  const std::uintptr_t first = guard.first + (guard.shares_first() ? kPage : 0);
  const std::uintptr_t last = guard.last - (guard.shares_last() ? kPage : 0);
  return first >= last || protect(first, last, guard.closed());
}

// Stops watching a buffer: makes its pages accessible, and frees its entry in the table. The lock
// of class Locked must be held.
void end_guard(Guard& guard) {
  if (guard.breakpoint >= 0)
    kernel::direct(SYS_close, guard.breakpoint);
  else
    open_pages(guard.first, guard.last);
  guard.live = false;
  if (live.fetch_sub(1) > 1) return;
  for (Thread& thread : known_threads())
    if (thread.used) thread.selector = kernel::kAllow;
}

void note_unknown(Site& site, bool sent, Unknown why) {
  ++(sent ? site.before : site.after).unknown[static_cast<int>(why)];
}

void unseen(Guard& guard, Unknown why) {
  note_unknown(*guard.site, guard.sent, why);
  ++(guard.sent ? guard.site->before : guard.site->after).broken_off;
  end_guard(guard);
}

void all_unseen(Unknown why) {
  for (Guard& guard : guards)
    if (guard.live) unseen(guard, why);
}

void unseen_near_stack(const Thread& me) {
  for (Guard& guard : guards)
    if (guard.live && guard.near_stack(me.stack_in_use)) unseen(guard, Unknown::on_the_stack);
}

// Counts an access to a watched buffer by this instruction. If the table is full, the instruction
// with the fewest accesses is replaced and its count is inherited, so that frequent instructions
// stay ("space saving", Metwally, Agrawal, El Abbadi, ICDT 2005).
void count_touch(Windows& windows, Instruction by) {
  if (!by.address) return;
  Touch* rarest = windows.touches;
  for (Touch& touch : windows.touches) {
    if (touch.address == by.address) return void(++touch.count);
    if (touch.count < rarest->count) rarest = &touch;
  }
  *rarest = {by.address, by.returns_to, 0, 0, rarest->count + 1};
}

// Records a measured interval. A random sample of all intervals is kept, each with equal
// probability. The timeline shows only the part of the interval without any access.
void keep(Site& site, What side, Bounds bounds, Span proven, Instruction by) {
  Windows& windows = side == What::before ? site.before : site.after;
  const std::uint64_t place =
      windows.measured < kWindows ? windows.measured : random_number() % (windows.measured + 1);
  if (place < kWindows) windows.kept[place] = bounds;
  ++windows.measured;
  count_touch(windows, by);
  recorder.event(site, side, proven.began_ns, proven.ended_ns);
}

// Records the interval up to the first access to a receive buffer, and stops watching the buffer.
// Two times are subtracted from the interval: the time lost by page faults on other memory in the
// same pages, and the time that it took to notice this access. If there were so many page faults
// that these pages are no longer watched, the time lost is uncertain, and the upper bound of the
// interval still contains it. The timeline shows the clock's unchanged times, since it shows the
// order of accesses and calls.
void touched(Guard& guard, std::int64_t when_ns, Instruction by, Cost cost) {
  if (guard.flight) {
    // An access by a thread of the MPI library, such as its progress thread, is part of the
    // operation itself, and is not reported.
    const Thread* const me = this_record();
    if (!me || !me->of_library) touched_in_flight(guard.flight, guard.begin, by);
    return end_guard(guard);
  }
  const std::int64_t seen_ns = guard.unseen_ns ? guard.unseen_ns : when_ns;
  const std::int64_t lost_ns = guard.lost_ns + (guard.unseen_ns ? 0 : cost.most_ns);
  const std::int64_t least_ns = std::max<std::int64_t>(0, seen_ns - guard.set_ns - lost_ns);
  const std::int64_t most_ns =
      when_ns - guard.set_ns - (guard.loose ? 0 : guard.lost_ns) - cost.least_ns;
  // The cost of signals is an estimate, so the upper bound may come out below the lower one.
  keep(*guard.site, What::after, {least_ns, std::max(least_ns, most_ns)}, {guard.set_ns, seen_ns},
       by);
  end_guard(guard);
}

// Records that from now on accesses to memory beside the buffer, or to the buffer's shared pages,
// may be missed.
void misses(Guard& guard) {
  if (!guard.unseen_ns) guard.unseen_ns = now_ns();
}

// Makes accessible the pages on which the buffer shares space with other memory, and no longer
// watches them. The first access to the remaining pages, if there are any, still gives an upper
// bound of the interval.
void loosen(Guard& guard) {
  protect_ends(guard, PROT_READ | PROT_WRITE);
  misses(guard);
  if (guard.shares_first()) guard.first += kPage;
  if (guard.shares_last()) guard.last -= kPage;
  guard.loose = true;
  if (guard.sent || guard.first >= guard.last) unseen(guard, Unknown::neighbours);
}

void ring() {
  bell.fetch_add(1);
  kernel::direct(SYS_futex, reinterpret_cast<long>(&bell), FUTEX_WAKE_PRIVATE, 1);
}

void note_first_write(const Guard& guard, std::int64_t when_ns) {
  if (!guard.wrote_ns) recorder.event(*guard.site, What::sent, guard.set_ns, when_ns);
}

// Records a write into a watched send buffer, and makes its pages writable. They stay writable for
// a while, since more writes are likely.
void written(Guard& guard, std::int64_t when_ns, Instruction by) {
  open_pages(guard.first, guard.last);
  note_first_write(guard, when_ns);
  guard.open = true;
  guard.wrote_ns = when_ns;
  guard.writer = by;
  ring();
}

// Records that a send buffer's pages are protected again, and that no write since `since_ns` was
// missed.
void is_closed(Guard& guard, std::int64_t since_ns) {
  guard.open = false;
  guard.unseen_ns = 0;
  guard.closed_ns = since_ns;
}

bool other_threads() {
  int others = 0;
  for (const Thread& thread : known_threads()) others += thread.used.load() && !thread.of_library;
  return others > 1;
}

}  // namespace weft::advise
