// Watches buffers of calls by protecting their pages (guard.h). This file begins to watch a buffer,
// and stops it at MPI calls, forks and changes of signal handlers. guard_slots.h contains the table
// of watched buffers, guard_signals.h the signal handlers, and guard_closing.h the thread that
// protects written pages again.
#include "advise/guard.h"

#include "advise/breakpoints.h"
#include "advise/guard_closing.h"
#include "advise/guard_cost.h"
#include "advise/guard_signals.h"
#include "advise/guard_slots.h"
#include "advise/memory_map.h"

namespace weft::advise {
namespace {

Unknown off = Unknown::switched_off;
// True if the advisor's thread runs, which protects pages of send buffers again after writes.
bool watcher = false;

// Returns whether the buffer lies on this thread's stack or near its stack pointer (a user-level
// thread has a stack of its own).
bool on_this_stack(const Guard& guard) {
  const Thread* const me = this_record();
  return me->stack.meets(guard.begin, guard.end) || guard.near_stack(stack_pointer());
}

// Decides whether a breakpoint can watch a small buffer. Returns Unknown::none if so, otherwise the
// reason why not. A breakpoint sees only the accesses of this thread, so the program must have no
// other threads. The buffer may lie on the stack.
Unknown judge_small(const Guard& guard) {
  if (other_threads()) return Unknown::threads;
  const Unknown why = plain_memory(guard.begin, guard.end);
  return why == Unknown::on_the_stack ? Unknown::none : why;
}

// Decides whether a buffer can be watched. Returns Unknown::none if so, otherwise the reason why
// not.
Unknown judge(const Guard& guard, bool may_share) {
  if (guard.small) return judge_small(guard);
  if (on_this_stack(guard)) return Unknown::on_the_stack;
  if (of_a_thread(guard.first, guard.last)) return Unknown::not_plain_memory;
  if (!may_share && guard.opens_in_mpi()) return Unknown::shared_page;
  return plain_memory(guard.first, guard.last);
}

// Returns a free entry of the table `guards`, to watch a buffer on these pages. Makes an entry free
// by giving up a buffer that has been watched for longer than kLongest, or the send buffer that has
// been watched longest, which may never be sent again. Returns nullptr if there is no such entry,
// or if a buffer other than a send buffer is being watched on the same pages.
Guard* free_guard(std::uintptr_t first, std::uintptr_t last) {
  Guard *found = nullptr, *oldest = nullptr;
  for (Guard& guard : guards) {
    const bool meets = first < guard.last && guard.first < last;
    if (guard.live && meets && !guard.sent) return nullptr;
    if (guard.live && (meets || now_ns() - guard.set_ns > kLongest))
      unseen(guard, Unknown::never_touched);
    if (!guard.live)
      found = &guard;
    else if (guard.sent && (!oldest || guard.set_ns < oldest->set_ns))
      oldest = &guard;
  }
  if (found || !oldest) return found;
  unseen(*oldest, Unknown::never_touched);
  return oldest;
}

Unknown close_first(Guard& guard) {
  if (!guard.small) return close_inner(guard) ? Unknown::none : Unknown::not_plain_memory;
  guard.breakpoint = breakpoint_on(guard.begin, guard.end - guard.begin);
  return guard.breakpoint >= 0 ? Unknown::none : Unknown::breakpoint;
}

// Begins to watch a buffer: protects its pages. Returns Unknown::none, or the reason why that is
// impossible. Two kinds of threads must not meet protected pages: those that block the signals
// which an access raises, and those whose system calls are not redirected. Therefore `live` is
// raised first, and then the threads are asked which signals they block. A thread that blocks
// signals later sees `live`, and makes the pages accessible first.
Unknown set(Guard& slot, const Guard& wanted) {
  if (live.load() == 0) {
    if (!handlers_open()) return Unknown::signals;
    catch_signals();
  }
  Thread* const me = this_record();
  if (!me) return Unknown::threads;
  live.fetch_add(1);
  slot = wanted;
  slot.live = true;
  Unknown why = Unknown::threads;
  if (dispatch_own(*me) && all_known_and_open()) {
    for (Thread& thread : known_threads())
      if (thread.used && thread.inside.load() == 0 && !thread.may_block.load())
        thread.selector = kernel::kBlock;
    if (!slot.shares_pages() || !in_calls_elsewhere(slot.first, slot.last)) why = close_first(slot);
  }
  if (why != Unknown::none) end_guard(slot);
  return why;
}

Guard by_pages(Site& site, const void* buffer, std::size_t bytes) {
  Guard guard{};
  guard.site = &site;
  guard.begin = reinterpret_cast<std::uintptr_t>(buffer);
  guard.end = guard.begin + bytes;
  guard.first = guard.begin & ~(kPage - 1);
  guard.last = (guard.end + kPage - 1) & ~(kPage - 1);
  guard.breakpoint = -1;
  return guard;
}

// Excludes the pages that the buffer fills only in part from being protected. They may hold memory
// that another rank copies through the kernel, and such a copy fails on protected pages. Returns
// false if no page remains.
bool keep_whole_pages(Guard& guard) {
  guard.first = guard.begin = (guard.begin + kPage - 1) & ~(kPage - 1);
  guard.last = guard.end = guard.end & ~(kPage - 1);
  return guard.first < guard.last;
}

// Begins to watch the buffer that `wanted` describes, and returns its entry in the table. Returns
// nullptr if it cannot be watched now. mask: the signals that the thread blocks. The lock of class
// Locked must be held.
Guard* begin_guard(const Guard& wanted, std::uint64_t mask, bool may_share) {
  Guard* const slot = free_guard(wanted.first, wanted.last);
  if (!slot) return nullptr;
  Unknown why = (mask & kGuardSignals) != 0 ? Unknown::signals : judge(wanted, may_share);
  if (why == Unknown::none) why = set(*slot, wanted);
  if (why == Unknown::none) return slot;
  note_unknown(*wanted.site, wanted.sent, why);
  return nullptr;
}

// Returns whether any watched buffer has pages that must be accessible while a thread is inside
// MPI. It needs no lock, since watching begins only in MPI calls, and each buffer is checked again
// under the lock.
bool opened_in_mpi() {
  if (live.load() == 0) return false;
  for (const Guard& guard : guards)
    if (guard.live && guard.opens_in_mpi()) return true;
  return false;
}

}  // namespace

void guards_begin(double overhead, bool intervals) {
  if (overhead > 0 && intervals) keep_an_event();
  begin_budget(overhead);
  if (overhead <= 0) return;
  before_a_thread_leaves = [] { release_all_guards(Unknown::threads); };
  const bool known = know_this_thread(false);
  off = known ? Unknown::none : Unknown::not_supported;
  // This thread is inside MPI_Init, which it entered before it was registered.
  enter_mpi();
  if (known && intervals) measure_cost();
}

Unknown guards_off() {
  return off;
}

bool guard_affordable(std::size_t bytes, std::int64_t kept_ns) {
  // Ns to set a guard, and ns for each of its pages.
  constexpr std::int64_t kSetting = 60'000, kPerPage = 400;
  const auto cost = kSetting + static_cast<std::int64_t>(bytes / kPage) * kPerPage;
  const std::int64_t head = bytes < 1 << 20 ? kHead : 0;
  if (spent_ns.load(std::memory_order_relaxed) + cost > allowed_ns() + head - kept_ns) {
    save_for(cost);
    return false;
  }
  saved_enough();
  return true;
}

bool guard_always() {
  return budget_part() >= 1;
}

void guard_result(Site& site, const void* result, std::size_t bytes, bool may_share) {
  Guard wanted = by_pages(site, result, bytes);
  wanted.small = fits_breakpoint(wanted.begin, bytes);
  if (wanted.small) {
    wanted.first = wanted.begin;
    wanted.last = wanted.end;
  }
  wanted.in_call = wanted.opens_in_mpi();
  const Locked locked;
  if (Guard* const guard = begin_guard(wanted, locked.mask(), may_share)) guard->set_ns = now_ns();
}

void guard_sent(Site& site, const void* buffer, std::size_t bytes, bool may_share) {
  if (!watcher) watcher = start_watcher(close_what_was_written);
  Guard wanted = by_pages(site, buffer, bytes);
  wanted.sent = true;
  const Locked locked;
  if (!watcher) return note_unknown(site, true, Unknown::threads);
  Guard* const guard = begin_guard(wanted, locked.mask(), may_share);
  if (!guard) return;
  guard->set_ns = guard->closed_ns = now_ns();
  plan_closing(*guard);
}

void guard_flight(int flight, const void* buffer, std::size_t bytes, bool read_only) {
  if (off != Unknown::none || !this_record()) return;
  // The counts for buffers of operations in flight need a call site. This one collects them all; no
  // report shows it.
  static Site all;
  Guard wanted = by_pages(all, buffer, bytes);
  wanted.flight = flight;
  wanted.read_only = read_only;
  if (!read_only && !keep_whole_pages(wanted)) return;
  const Locked locked;
  if (Guard* const guard = begin_guard(wanted, locked.mask(), true)) guard->set_ns = now_ns();
}

void end_flight(int flight) {
  if (live.load() == 0) return;
  const Locked locked;
  for (Guard& guard : guards)
    if (guard.live && guard.flight == flight) end_guard(guard);
}

void add_before(Site& site, const Unwritten& found, std::int64_t when_ns) {
  const Locked locked;
  keep(site, What::before, found.bounds, {when_ns - found.bounds.least_ns, when_ns}, found.writer);
}

Touch touch_now(const Touch& touch) {
  const Locked locked;
  return touch;
}

void have_place(Touch& touch, std::uint64_t address, std::uint64_t offset, std::uint32_t module) {
  const Locked locked;
  if (touch.address != address) return;
  touch.offset = offset;
  touch.module = module;
}

void release_all_guards(Unknown why) {
  if (live.load() == 0) return;
  const Locked locked;
  all_unseen(why);
}

void operation_begins() {
  if (!opened_in_mpi()) return;
  const Locked locked;
  for (Guard& guard : guards)
    if (guard.live && !guard.flight && guard.opens_in_mpi()) unseen(guard, Unknown::shared_page);
}

void application_sets_handler(int signal) {
  if (signal > SIGSYS || (kernel::bit(signal) & kGuardSignals) == 0) return;
  const Locked locked;
  all_unseen(Unknown::own_fault);
  give_signals_back();
}

void fork_begins() {
  closing_pauses(true);
}

void fork_ended() {
  closing_pauses(false);
}

void guards_in_child() {
  for (Guard& guard : guards) {
    if (guard.live && guard.breakpoint < 0) open_pages(guard.first, guard.last);
    guard.live = false;
  }
  live = 0;
  // A forked child has no thread that protects pages of send buffers, so no buffers are watched
  // there.
  off = Unknown::switched_off;
  lock_flag.clear();
}

void given_to_mpi(const void* pointer, std::size_t bytes, bool writes, Instruction call) {
  const std::int64_t when_ns = now_ns();
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  const auto meets = [&](const Guard& guard) {
    return guard.live && !guard.flight && begin < guard.end && !(guard.sent && !writes) &&
           (bytes == SIZE_MAX || begin + bytes > guard.begin);
  };
  for (Guard& guard : guards) {
    if (!meets(guard)) continue;
    const Locked locked;
    // Another thread may have stopped watching this buffer before this thread took the lock.
    if (!meets(guard)) continue;
    const bool inside = begin >= guard.begin;
    if (guard.sent) note_first_write(guard, when_ns);
    if (!guard.sent && (inside || bytes != SIZE_MAX))
      touched(guard, when_ns, call);
    else
      unseen(guard, Unknown::mpi_call);
  }
}

std::optional<Unwritten> sent_by_mpi(const void* pointer, std::size_t bytes, std::int64_t when_ns) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  for (Guard& guard : guards) {
    if (!guard.live || !guard.sent || guard.begin != begin || guard.end - begin != bytes) continue;
    const Locked locked;
    if (!guard.live) return {};
    const bool seen = !guard.open && (!guard.unseen_ns || guard.unseen_ns >= when_ns);
    const Instruction writer = guard.writer;
    Bounds found{seen ? std::max<std::int64_t>(0, when_ns - guard.closed_ns) : 0, kNoEnd};
    if (guard.wrote_ns) found.most_ns = std::max<std::int64_t>(0, when_ns - guard.wrote_ns);
    guard.site->quiet_ns = found.most_ns == kNoEnd ? found.least_ns : found.most_ns;
    guard.site->again_ns = when_ns - guard.set_ns;
    end_guard(guard);
    return Unwritten{found, writer};
  }
  return {};
}

// Records that send buffers have not been written since `began_ns`, so that a write between two
// consecutive calls is noticed. If the last write is expected much later, this is done only a few
// times, since each later write costs a page fault.
void nothing_written_since(std::int64_t began_ns) {
  constexpr int kEarly = 16;
  if (live.load() == 0 || other_threads()) return;
  const Locked locked;
  for (Guard& guard : guards) {
    if (!guard.live || !guard.sent || guard.wrote_ns > began_ns) continue;
    const bool early = guard.open && guard.not_before_ns > began_ns;
    if (early && (guard.not_before_ns == kInCall || ++guard.early > kEarly)) continue;
    if (guard.open || guard.closed_ns > began_ns) is_closed(guard, began_ns);
  }
}

void enter_mpi() {
  Thread* const me = this_record();
  if (!me) return;
  if (nobody_looks()) {
    me->inside.store(me->inside.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  if (me->inside.fetch_add(1) > 0) return;
  me->selector = kernel::kAllow;
  if (me->of_library || !opened_in_mpi()) return;
  const Locked locked;
  // If watching has used up its time limit, all buffers are given up, since each MPI call must
  // change the protection of their pages.
  if (is_overspent()) all_unseen(Unknown::budget);
  const bool others = other_threads();
  for (Guard& guard : guards) {
    if (!guard.live || guard.open || !guard.opens_in_mpi()) continue;
    protect_shared(guard, PROT_READ | PROT_WRITE);
    if (others) misses(guard);
  }
}

void leave_mpi() {
  Thread* const me = this_record();
  if (!me) return;
  if (nobody_looks()) {
    me->inside.store(me->inside.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    return;
  }
  if (me->inside.fetch_sub(1) > 1) return;
  if (!me->of_library && opened_in_mpi()) {
    const Locked locked;
    for (Guard& guard : guards) {
      if (!guard.live || guard.open || !guard.opens_in_mpi() || any_in_mpi()) continue;
      if (guard.near_stack(stack_pointer()))
        unseen(guard, Unknown::on_the_stack);
      else if (!protect_shared(guard, guard.closed()))
        unseen(guard, Unknown::not_plain_memory);
      else if (guard.sent && guard.unseen_ns)
        is_closed(guard, now_ns());
      if (guard.in_call) guard.set_ns = now_ns();
      guard.in_call = false;
    }
  }
  select_own(*me);
}

std::int64_t guarding_ns() {
  return spent_ns.load(std::memory_order_relaxed);
}

}  // namespace weft::advise
