// Setting guards, and the three signals that end them: SIGSEGV (a closed page), SIGSYS (a system
// call) and SIGTRAP (a breakpoint, or the one instruction that was let pass beside a buffer). The
// handlers stay in place when the last guard has ended, since another thread's fault may be on its
// way. A fault that is not a guard's ends all guards, gives the application its handlers back, and
// happens again; so does every call that sets a handler. One lock orders everything; who holds it
// has all signals blocked and touches no memory but this file's and the record's.
#include "advise/guard.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "advise/kernel.h"
#include "advise/memory_map.h"
#include "advise/recorder.h"
#include "advise/system_calls.h"
#include "advise/threads.h"
#include "base/clock.h"

namespace weft::advise {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr int kGuards = 8;
constexpr int kNeighbours = 16;      // accesses beside a buffer that are let pass
constexpr std::size_t kAccess = 64;  // bytes that one instruction may touch at once
constexpr std::int64_t kLongest = INT64_C(10'000'000'000);
constexpr std::int64_t kSetting = 60'000, kPerPage = 400, kHead = 2'000'000;  // ns
constexpr std::int64_t kSignal = 1'500;  // ns that the kernel needs for one
constexpr std::int64_t kInCall = INT64_MAX;

struct Guard {
  bool live;
  bool sent;   // only writes are watched
  bool small;  // to be watched by a breakpoint
  bool loose;  // without the pages that it shared
  Site* site;
  std::uintptr_t begin, end;   // the buffer
  std::uintptr_t first, last;  // its pages
  int breakpoint;              // its descriptor; -1: pages
  int neighbours;
  std::int64_t unseen_ns;  // from when on an access may have been missed; or 0
  std::int64_t set_ns;
  std::int64_t lost_ns;  // since then, by accesses that were let pass
  // Of what is sent: open since it was written, and closed again when it is due.
  bool open;
  std::int64_t wrote_ns;                 // it was written then or later; or 0
  std::int64_t closed_ns;                // and not since
  std::int64_t pause_ns, not_before_ns;  // kInCall: a system call may write it
  unsigned char start[kAccess];          // as it was before an access right before it

  bool has(std::uintptr_t address) const { return address >= begin && address < end; }
  bool covers(std::uintptr_t address) const {
    return breakpoint < 0 && address >= first && address < last;
  }
  // Whether its first and its last page hold other memory, too.
  bool shares_first() const { return !loose && begin != first; }
  bool shares_last() const { return !loose && end != last; }
  bool near_stack(std::uintptr_t pointer) const {
    return breakpoint < 0 && pointer + kPage > first && pointer < last + kPage;
  }
  bool shares_pages() const { return breakpoint < 0 && (shares_first() || shares_last()); }
  // What is sent may be freed, and be the library's memory after that.
  bool opens_in_mpi() const { return sent || shares_pages(); }
  bool is_right_before(std::uintptr_t address) const {
    return address < begin && begin - address < kAccess;
  }
  std::size_t start_bytes() const { return std::min<std::size_t>(kAccess, end - begin); }
  int closed() const { return sent ? PROT_READ : PROT_NONE; }
  std::int64_t due_ns() const { return std::max(wrote_ns + pause_ns, not_before_ns); }
};

Guard guards[kGuards];
std::atomic<int> live{0};            // seq_cst: see Thread::may_block, and leave_mpi()
std::atomic<int> threads_in_mpi{0};  // of the application, while guards live
std::atomic_flag lock_flag;
kernel::Action applications[3];
constexpr int kSignals[3] = {SIGSEGV, SIGSYS, SIGTRAP};

double budget = 0;
std::int64_t began_ns = 0;
std::int64_t computed_before_ns = 0;
std::atomic<std::int64_t> spent_ns{0};
std::uint64_t chance = 0x9e3779b97f4a7c15;
Unknown off = Unknown::switched_off;
std::atomic<bool> closing{false};  // the advisor's thread closes pages: see StackInUse
std::atomic<bool> forking{false};  // it must not: a child would find the lock held
bool watcher = false;              // it runs
std::atomic<std::uint32_t> bell{0};

// Whether this thread's system calls are dispatched. Others only ever switch that on, after they
// have raised `live`; so what was read before is looked at again.
void select_own(Thread& me) {
  const auto wanted = [&] {
    return me.inside.load() == 0 && live.load() > 0 && !me.may_block.load();
  };
  bool block = false;
  do {
    block = wanted();
    me.selector = block ? kernel::kBlock : kernel::kAllow;
  } while (!block && wanted());
}

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

void yield() {
  kernel::direct(SYS_sched_yield);
}

bool protect(std::uintptr_t first, std::uintptr_t last, int protection) {
  return kernel::direct(SYS_mprotect, static_cast<long>(first), static_cast<long>(last - first),
                        protection) == 0;
}
void open_pages(std::uintptr_t first, std::uintptr_t last) {
  protect(first, last, PROT_READ | PROT_WRITE);
}

std::uintptr_t stack_pointer() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

// Who blocks signals cannot open a page of its own stack any more. So none is closed under it: it
// says where its stack is, before, and opens what is near; who closes pages says so, and looks.
// Inside a handler that interrupted one of these the outer one goes on: its own stack is no buffer.
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

void unseen_near_stack(const Thread& me);

// Holds the lock, with this thread's signals blocked. Its system calls are let through once it has
// it, since who had it before may have switched them.
class Locked {
 public:
  Locked() : me_(this_record()), stack_(me_), mask_(kernel::block_all()) {
    constexpr int kPatience = 1000;
    for (int i = 0; lock_flag.test_and_set(std::memory_order_acquire); ++i)
      if (i > kPatience) yield();
    if (me_) me_->selector = kernel::kAllow;
    began_ = now_ns();
    if (me_) unseen_near_stack(*me_);
  }
  ~Locked() {
    spent_ns.fetch_add(now_ns() - began_, std::memory_order_relaxed);
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
  std::int64_t began_;
};

// The pages of a guard that are open inside MPI.
bool protect_shared(const Guard& guard, int protection) {
  if (guard.sent) return protect(guard.first, guard.last, protection);
  bool done = true;
  if (guard.shares_first()) done = protect(guard.first, guard.first + kPage, protection);
  if (guard.shares_last()) done = protect(guard.last - kPage, guard.last, protection) && done;
  return done;
}

// The others.
bool close_inner(const Guard& guard) {
  if (guard.sent) return true;
  const std::uintptr_t first = guard.first + (guard.shares_first() ? kPage : 0);
  const std::uintptr_t last = guard.last - (guard.shares_last() ? kPage : 0);
  return first >= last || protect(first, last, guard.closed());
}

// With the lock held.
void end_guard(Guard& guard) {
  if (guard.breakpoint >= 0)
    kernel::direct(SYS_close, guard.breakpoint);
  else
    open_pages(guard.first, guard.last);
  guard.live = false;
  if (live.fetch_sub(1) > 1) return;
  for (Thread& thread : threads)
    if (thread.used) thread.selector = kernel::kAllow;
}

void note_unknown(Site& site, bool sent, Unknown why) {
  ++(sent ? site.before : site.after).unknown[static_cast<int>(why)];
}

void unseen(Guard& guard, Unknown why) {
  note_unknown(*guard.site, guard.sent, why);
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

std::uint64_t random_number() {
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return chance;
}

// Each window has the same chance to be kept. On the timeline is what is proven.
void keep(Site& site, What side, Bounds bounds, std::int64_t begin_ns) {
  Windows& windows = side == What::before ? site.before : site.after;
  const std::uint64_t place =
      windows.measured < kWindows ? windows.measured : random_number() % (windows.measured + 1);
  if (place < kWindows) windows.kept[place] = bounds;
  ++windows.measured;
  recorder.event(site, side, begin_ns, begin_ns + bounds.least_ns);
}

// What the few accesses beside it have cost is taken off, since without the guard the program would
// have come there so much earlier. Where there were many it may have been waiting for a time of
// day.
void touched(Guard& guard, std::int64_t when_ns) {
  const std::int64_t most_ns = when_ns - guard.set_ns - (guard.loose ? 0 : guard.lost_ns);
  const std::int64_t least_ns =
      guard.unseen_ns ? guard.unseen_ns - guard.set_ns - guard.lost_ns : most_ns;
  keep(*guard.site, What::after, {std::max<std::int64_t>(0, least_ns), most_ns}, guard.set_ns);
  end_guard(guard);
}

// From now on an access to the pages that it shares may be missed.
void misses(Guard& guard) {
  if (!guard.unseen_ns) guard.unseen_ns = now_ns();
}

// The pages that it shared stay open; if there are others, these still say when the result was
// touched at the latest.
void loosen(Guard& guard) {
  protect_shared(guard, PROT_READ | PROT_WRITE);
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

// What is sent has been written. Who writes it once may go on, so it stays open for a while.
void written(Guard& guard, std::int64_t when_ns) {
  open_pages(guard.first, guard.last);
  guard.open = true;
  guard.wrote_ns = when_ns;
  ring();
}

// All of it is closed from now on.
void is_closed(Guard& guard) {
  guard.open = false;
  guard.unseen_ns = 0;
  guard.closed_ns = now_ns();
}

bool other_threads() {
  int others = 0;
  for (const Thread& thread : threads) others += thread.used.load() && !thread.of_library;
  return others > 1;
}

// In a handler: from its begin on, this thread's system calls pass.
class Handler {
 public:
  Handler() : me_(this_record()) {
    if (me_) me_->selector = kernel::kAllow;
    when_ns_ = kernel::clock_ns();
  }
  ~Handler() {
    if (me_) select_own(*me_);
    spent_ns.fetch_add(kSignal, std::memory_order_relaxed);
  }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  Thread* me() const { return me_; }
  std::int64_t when_ns() const { return when_ns_; }

 private:
  Thread* const me_;
  std::int64_t when_ns_;
};

void give_signals_back();

#if defined(__x86_64__)

constexpr greg_t kSingleStep = 0x100;

greg_t* registers(void* context) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
}

// An access beside the buffer: its page is opened for this one instruction. Right before the buffer
// it may be the begin of one that reaches into it (a write changes its start, or does not matter),
// and other threads may use that moment. A page
// that serves as a stack stays open, since who blocks signals there could not go on.
void let_pass(Guard& guard, std::uintptr_t address, const Handler& handler, void* context) {
  Thread* const me = handler.me();
  if (guard.near_stack(static_cast<std::uintptr_t>(registers(context)[REG_RSP])))
    return unseen(guard, Unknown::on_the_stack);
  if (!me || me->opened_page) return unseen(guard, Unknown::neighbours);
  if (++guard.neighbours > kNeighbours) return loosen(guard);
  if (guard.sent)
    std::memcpy(guard.start, pointer(guard.begin), guard.start_bytes());
  else if (guard.is_right_before(address))
    misses(guard);
  if (other_threads()) misses(guard);
  me->opened_page = address & ~(kPage - 1);
  me->opened_ns = handler.when_ns();
  open_pages(me->opened_page, me->opened_page + kPage);
  registers(context)[REG_EFL] |= kSingleStep;
}

// A fault on a page that another thread has opened meanwhile; when it comes back, it is none.
bool came_too_late(std::uintptr_t address, Thread* me) {
  if (!me || me->late_fault == address) return false;
  for (const Guard& guard : guards) {
    if (!guard.covers(address)) continue;
    me->late_fault = address;
    return true;
  }
  return false;
}

void let_application_have_it() {
  const Locked locked;
  all_unseen(Unknown::own_fault);
  give_signals_back();
}

// A signal that is not ours, given to the application after all.
void pass_on(int signal, siginfo_t* info) {
  let_application_have_it();
  kernel::direct(SYS_rt_tgsigqueueinfo, kernel::direct(SYS_getpid), kernel::direct(SYS_gettid),
                 signal, reinterpret_cast<long>(info));
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const Handler handler;
  if (info->si_code <= 0) return pass_on(signal, info);  // somebody has sent it
  const Locked locked;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guard& guard : guards) {
    if (!guard.live || guard.open || !guard.covers(address)) continue;
    if (!guard.has(address)) return let_pass(guard, address, handler, context);
    return guard.sent ? written(guard, handler.when_ns()) : touched(guard, handler.when_ns());
  }
  if (came_too_late(address, handler.me())) return;
  // Somebody else's: it happens again, with the application's own handler.
  all_unseen(Unknown::own_fault);
  give_signals_back();
}

void stepped(Thread& me, void* context) {
  const Locked locked;
  registers(context)[REG_EFL] &= ~kSingleStep;
  for (Guard& guard : guards) {
    if (!guard.live || guard.open || !guard.covers(me.opened_page) || threads_in_mpi.load() > 0)
      continue;
    protect(me.opened_page, me.opened_page + kPage, guard.closed());
    // Who touches the result on another thread did not wait for this one.
    if (!other_threads()) guard.lost_ns += now_ns() - me.opened_ns + 2 * kSignal;
    if (guard.sent && guard.unseen_ns) is_closed(guard);
    if (guard.sent && std::memcmp(guard.start, pointer(guard.begin), guard.start_bytes()) != 0)
      written(guard, now_ns());
  }
  me.opened_page = 0;
}

void on_trap(int signal, siginfo_t* info, void* context) {
  const Handler handler;
  constexpr int kByBreakpoint = 6;  // TRAP_PERF
  if (info->si_code != kByBreakpoint) {
    Thread* const me = handler.me();
    return me && me->opened_page ? stepped(*me, context) : pass_on(signal, info);
  }
  const Locked locked;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guard& guard : guards)
    if (guard.live && guard.breakpoint >= 0 && address + kAccess > guard.begin &&
        address < guard.end)
      return touched(guard, handler.when_ns());
}

// The signals that the interrupted program holds back, as the kernel counts them.
std::uint64_t blocked_before(void* context) {
  std::uint64_t mask = 0;
  std::memcpy(&mask, &static_cast<ucontext_t*>(context)->uc_sigmask, sizeof mask);
  return mask;
}

// Compares the memory of a system call with the guards.
class Comparison final : public MemoryVisitor {
 public:
  // filled: the call does nothing but fill one range, from its begin on.
  Comparison(std::int64_t when_ns, bool filled) : when_ns_(when_ns), filled_(filled) {}
  void visit(std::uintptr_t begin, std::size_t bytes, bool writes) override {
    const std::uintptr_t end = begin + bytes;
    for (Guard& guard : guards) {
      const std::uintptr_t first = std::min(guard.first, guard.begin);
      const std::uintptr_t last = std::max(guard.last, guard.end);
      if (!guard.live || begin >= last || first >= end || (guard.sent && !writes)) continue;
      const Locked locked;
      if (!guard.live) continue;
      const bool inside = begin < guard.end && guard.begin < end;
      if (inside && !guard.sent)
        touched(guard, when_ns_);
      else if (guard.sent && filled_ && !filled_guard_ && guard.not_before_ns != kInCall)
        open_for_call(guard, begin);
      else if (guard.breakpoint < 0)
        unseen(guard, inside ? Unknown::system_call : Unknown::neighbours);
    }
  }
  // The call has put so many bytes there, or failed. Where it never returns, what it was given
  // stays open.
  void returned(long bytes) {
    if (!filled_guard_) return;
    const Locked locked;
    Guard& guard = *filled_guard_;
    if (!guard.live || guard.set_ns != set_ns_) return;
    const std::uintptr_t end = begin_ + static_cast<std::uintptr_t>(std::max(0L, bytes));
    if (begin_ < guard.end && guard.begin < end)
      guard.wrote_ns = std::max(guard.wrote_ns, when_ns_);
    guard.not_before_ns = now_ns() + guard.pause_ns;
    ring();
  }

 private:
  void open_for_call(Guard& guard, std::uintptr_t begin) {
    filled_guard_ = &guard;
    set_ns_ = guard.set_ns;
    begin_ = begin;
    open_pages(guard.first, guard.last);
    guard.open = true;
    guard.not_before_ns = kInCall;
  }

  const std::int64_t when_ns_;
  const bool filled_;
  Guard* filled_guard_ = nullptr;
  std::int64_t set_ns_ = 0;
  std::uintptr_t begin_ = 0;
};

// The program itself makes the system call that it was about to make.
void make_again(greg_t* r, long number) {
  constexpr int kInstruction = 2;  // bytes of `syscall`
  r[REG_RIP] -= kInstruction;
  r[REG_RAX] = number;
}

bool watches(int descriptor) {
  for (const Guard& guard : guards)
    if (guard.live && guard.breakpoint == descriptor) return true;
  return false;
}

void on_system_call(int signal, siginfo_t* info, void* context) {
  constexpr int kBySeccomp = 1, kDispatched = 2;  // SYS_SECCOMP, SYS_USER_DISPATCH
  const Handler handler;
  greg_t* const r = registers(context);
  if (info->si_code == kBySeccomp) {
    let_application_have_it();
    return make_again(r, info->si_syscall);
  }
  if (info->si_code != kDispatched) return pass_on(signal, info);
  const long number = info->si_syscall;
  const long arguments[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
  const bool fills = number == SYS_read || number == SYS_pread64;
  Comparison comparison(handler.when_ns(), fills);
  if (!(number == SYS_close && watches(static_cast<int>(arguments[0]))) &&
      memory_of_call(number, arguments, comparison) == Memory::known && live.load() > 0) {
    // Interruptible, and with the calls of the application's handlers dispatched as before.
    if (handler.me()) select_own(*handler.me());
    kernel::block_these(blocked_before(context));
    r[REG_RAX] = kernel::direct(number, arguments[0], arguments[1], arguments[2], arguments[3],
                                arguments[4], arguments[5]);
    comparison.returned(r[REG_RAX]);
    return;
  }
  {
    const Locked locked;
    all_unseen(Unknown::system_call);
  }
  make_again(r, number);
}

#else

void on_fault(int, siginfo_t*, void*) {}
void on_trap(int, siginfo_t*, void*) {}
void on_system_call(int, siginfo_t*, void*) {}

#endif

using SignalHandler = void(int, siginfo_t*, void*);
constexpr SignalHandler* kHandlers[3] = {on_fault, on_system_call, on_trap};

// A handler of the application's that holds back a guard's signals would die of them.
bool handlers_open() {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    kernel::Action action{};
    if ((kernel::bit(signal) & kGuardSignals) != 0 || !kernel::get_action(signal, &action))
      continue;
    const bool caught =
        reinterpret_cast<std::uintptr_t>(action.handler) > 1;  // not SIG_DFL, SIG_IGN
    if (caught && (action.mask & kGuardSignals) != 0) return false;
  }
  return true;
}

void catch_signals() {
  for (int i = 0; i < 3; ++i) {
    kernel::Action now{};
    kernel::get_action(kSignals[i], &now);
    if (now.handler == kHandlers[i]) continue;
    applications[i] = now;
    kernel::set_action(kSignals[i], kernel::own_action(kHandlers[i]));
  }
}

void give_signals_back() {
  for (int i = 0; i < 3; ++i) {
    kernel::Action now{};
    kernel::get_action(kSignals[i], &now);
    if (now.handler == kHandlers[i]) kernel::set_action(kSignals[i], applications[i]);
  }
}

// Out of the way of the numbers that the application's own files get.
int moved_up(int descriptor) {
  constexpr long kFirst = 900;
  const long moved = kernel::direct(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kFirst);
  if (moved < 0) return descriptor;
  kernel::direct(SYS_close, descriptor);
  return static_cast<int>(moved);
}

int breakpoint_on(std::uintptr_t begin, std::size_t bytes) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_BREAKPOINT;
  wanted.bp_type = HW_BREAKPOINT_RW;
  wanted.bp_addr = begin;
  wanted.bp_len = bytes;
  wanted.sample_period = 1;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.remove_on_exec = 1;
  wanted.sigtrap = 1;
  wanted.sig_data = begin;
  const long opened = kernel::direct(SYS_perf_event_open, reinterpret_cast<long>(&wanted), 0, -1,
                                     -1, PERF_FLAG_FD_CLOEXEC);
  return opened < 0 ? -1 : moved_up(static_cast<int>(opened));
}

// The first event of a machine makes its kernel wait for all cores, 8 to 130 ms; the next ones take
// microseconds while there is one. So this process has one that counts nothing.
void keep_an_event() {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_DUMMY;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  const long opened = kernel::direct(SYS_perf_event_open, reinterpret_cast<long>(&wanted), 0, -1,
                                     -1, PERF_FLAG_FD_CLOEXEC);
  if (opened >= 0) moved_up(static_cast<int>(opened));
}

bool fits_breakpoint(std::uintptr_t begin, std::size_t bytes) {
  return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && begin % bytes == 0;
}

// This thread's, or the one that it runs on now.
bool on_this_stack(const Guard& guard) {
  const Thread* const me = this_record();
  return me->stack.meets(guard.begin, guard.end) || guard.near_stack(stack_pointer());
}

// Whether the buffer can be watched.
Unknown judge(const Guard& guard, bool may_share) {
  if (guard.small) return other_threads() ? Unknown::threads : Unknown::none;
  if (on_this_stack(guard)) return Unknown::on_the_stack;
  if (of_a_thread(guard.first, guard.last)) return Unknown::not_plain_memory;
  if (!may_share && guard.opens_in_mpi()) return Unknown::shared_page;
  return plain_memory(guard.first, guard.last);
}

// A slot whose guard has ended, or has waited too long. What was sent may never be sent again: its
// guard gives way, on these pages or where there is no other slot. nullptr: a result's is there.
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

// In an order in which no thread's system call dies of a signal that it holds back, and none that
// is not dispatched is given closed pages: `live` is raised before threads are asked what they
// block, so that whoever blocks signals later sees it and ends this guard first.
Unknown set(Guard& slot, const Guard& wanted) {
  if (live.load() == 0) {
    if (!handlers_open()) return Unknown::signals;
    catch_signals();
  }
  live.fetch_add(1);
  slot = wanted;
  slot.live = true;
  Unknown why = Unknown::threads;
  if (all_known_and_open()) {
    for (Thread& thread : threads)
      if (thread.used && thread.inside.load() == 0 && !thread.may_block.load())
        thread.selector = kernel::kBlock;
    if (!slot.shares_pages() || !in_calls_elsewhere(slot.first, slot.last)) why = close_first(slot);
  }
  if (why != Unknown::none) end_guard(slot);
  return why;
}

std::int64_t computed_ns() {
  timespec t{};
  kernel::direct(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, reinterpret_cast<long>(&t));
  return t.tv_sec * INT64_C(1'000'000'000) + t.tv_nsec;
}

// A part of the time that has passed; where others use the core too, of what this process had of
// it, since that is what observing takes longer by. It is asked once a millisecond.
std::int64_t allowed_ns() {
  constexpr std::int64_t kFresh = 1'000'000;
  static std::atomic<std::int64_t> asked_ns{0}, had_ns{0};
  const std::int64_t now = now_ns();
  if (now - asked_ns.load(std::memory_order_relaxed) > kFresh) {
    had_ns.store(computed_ns() - computed_before_ns, std::memory_order_relaxed);
    asked_ns.store(now, std::memory_order_relaxed);
  }
  const std::int64_t base = std::min(now - began_ns, had_ns.load(std::memory_order_relaxed));
  return static_cast<std::int64_t>(budget * static_cast<double>(base));
}

// With the lock held. When it is closed again after a write: at first often enough for all the time
// between two calls; later the window before tells when the last write is to be expected, and how
// closely it must be known.
void plan_closing(Guard& guard) {
  constexpr std::int64_t kParts = 128, kLeast = 20'000;
  const std::int64_t gap = guard.site->gap_ns, quiet = guard.site->quiet_ns;
  guard.pause_ns = std::max(kLeast, (quiet ? quiet : gap) / kParts);
  guard.not_before_ns = quiet ? guard.set_ns + gap - quiet - quiet / 4 : 0;
}

// While a thread is in MPI, it closes nothing: the last to leave does.
bool close_again(Guard& guard) {
  constexpr std::int64_t kCosts = 2;
  const std::int64_t began_ns = now_ns();
  const bool in_mpi = threads_in_mpi.load() > 0;
  const bool done = in_mpi || protect_shared(guard, guard.closed());
  is_closed(guard);
  guard.pause_ns = std::max(guard.pause_ns, kCosts * (guard.closed_ns - began_ns));
  if (in_mpi) misses(guard);
  return done;
}

bool stack_near(const Guard& guard) {
  for (const Thread& thread : threads)
    if (thread.used && guard.near_stack(thread.stack_in_use)) return true;
  return false;
}

// With the lock held. How long until the next is due.
std::int64_t close_due() {
  std::int64_t next_ns = INT64_MAX;
  for (Guard& guard : guards) {
    if (!guard.live || !guard.open) continue;
    if (guard.due_ns() > now_ns())
      next_ns = std::min(next_ns, guard.due_ns());
    else if (stack_near(guard))
      unseen(guard, Unknown::on_the_stack);
    else if (spent_ns.load(std::memory_order_relaxed) > allowed_ns() + kHead)
      unseen(guard, Unknown::budget);
    else if (!close_again(guard))
      unseen(guard, Unknown::not_plain_memory);
  }
  return next_ns;
}

// The advisor's own thread: it sleeps until something has been written.
void close_what_was_written() {
  for (;;) {
    constexpr std::int64_t kLater = 1'000'000;
    const std::uint32_t rung = bell.load();
    std::int64_t next_ns = now_ns() + kLater;
    closing = true;
    if (!forking.load()) {
      const Locked locked;
      next_ns = close_due();
    }
    closing = false;
    const timespec until{next_ns / 1'000'000'000, next_ns % 1'000'000'000};
    kernel::direct(SYS_futex, reinterpret_cast<long>(&bell), FUTEX_WAIT_BITSET_PRIVATE, rung,
                   next_ns == INT64_MAX ? 0 : reinterpret_cast<long>(&until), 0,
                   static_cast<long>(FUTEX_BITSET_MATCH_ANY));
  }
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

// With the lock held. nullptr: it cannot be watched, or not now.
Guard* begin_guard(const Guard& wanted, std::uint64_t mask, bool may_share) {
  Guard* const slot = free_guard(wanted.first, wanted.last);
  if (!slot) return nullptr;
  Unknown why = (mask & kGuardSignals) != 0 ? Unknown::signals : judge(wanted, may_share);
  if (why == Unknown::none) why = set(*slot, wanted);
  if (why == Unknown::none) return slot;
  note_unknown(*wanted.site, wanted.sent, why);
  return nullptr;
}

// Whether some guard's pages are open inside MPI. Without the lock: what ends meanwhile is
// looked at again with it, and none begins but in a call of MPI.
bool opened_in_mpi() {
  if (live.load() == 0) return false;
  for (const Guard& guard : guards)
    if (guard.live && guard.opens_in_mpi()) return true;
  return false;
}

}  // namespace

void guards_begin(double overhead) {
  if (overhead > 0) keep_an_event();
  budget = overhead;
  began_ns = now_ns();
  computed_before_ns = computed_ns();
  if (overhead <= 0) return;
  const bool known = know_this_thread(false);
  off = known ? Unknown::none : Unknown::not_supported;
  enter_mpi();  // MPI_Init, which this thread entered before it was known
}

Unknown guards_off() {
  return off;
}

bool guard_affordable(std::size_t bytes) {
  const auto cost = kSetting + static_cast<std::int64_t>(bytes / kPage) * kPerPage;
  return spent_ns.load(std::memory_order_relaxed) + cost <=
         allowed_ns() + (bytes < 1 << 20 ? kHead : 0);
}

bool guard_always() {
  return budget >= 1;
}

void guard_result(Site& site, const void* result, std::size_t bytes, bool may_share) {
  Guard wanted = by_pages(site, result, bytes);
  wanted.small = fits_breakpoint(wanted.begin, bytes);
  if (wanted.small) {
    wanted.first = wanted.begin;
    wanted.last = wanted.end;
  }
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

void add_before(Site& site, Bounds bounds, std::int64_t when_ns) {
  const Locked locked;
  keep(site, What::before, bounds, when_ns - bounds.least_ns);
}

bool guards_exist() {
  return live.load() > 0;
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
    if (guard.live && guard.opens_in_mpi()) unseen(guard, Unknown::shared_page);
}

void application_sets_handler(int signal) {
  if (signal > SIGSYS || (kernel::bit(signal) & kGuardSignals) == 0) return;
  const Locked locked;
  all_unseen(Unknown::own_fault);
  give_signals_back();
}

void fork_begins() {
  forking = true;
  while (closing.load()) yield();
}

void fork_ended() {
  forking = false;
}

void guards_in_child() {
  for (Guard& guard : guards) {
    if (guard.live && guard.breakpoint < 0) open_pages(guard.first, guard.last);
    guard.live = false;
  }
  live = 0;
  off = Unknown::switched_off;  // the advisor's thread is not there
  lock_flag.clear();
}

void given_to_mpi(const void* pointer, std::size_t bytes, bool writes) {
  const std::int64_t when_ns = now_ns();
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  for (Guard& guard : guards) {
    if (!guard.live || begin >= guard.end || (guard.sent && !writes)) continue;
    const bool inside = begin >= guard.begin;
    if (bytes != SIZE_MAX && begin + bytes <= guard.begin) continue;
    const Locked locked;
    if (!guard.live) continue;
    if (!guard.sent && (inside || bytes != SIZE_MAX))
      touched(guard, when_ns);
    else
      unseen(guard, Unknown::mpi_call);
  }
}

std::optional<Bounds> sent_by_mpi(const void* pointer, std::size_t bytes, std::int64_t when_ns) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  for (Guard& guard : guards) {
    if (!guard.live || !guard.sent || guard.begin != begin || guard.end - begin != bytes) continue;
    const Locked locked;
    if (!guard.live) return {};
    const bool seen = !guard.open && (!guard.unseen_ns || guard.unseen_ns >= when_ns);
    Bounds found{seen ? std::max<std::int64_t>(0, when_ns - guard.closed_ns) : 0, kNoEnd};
    if (guard.wrote_ns) found.most_ns = std::max<std::int64_t>(0, when_ns - guard.wrote_ns);
    guard.site->quiet_ns = found.most_ns == kNoEnd ? found.least_ns : found.most_ns;
    end_guard(guard);
    return found;
  }
  return {};
}

void enter_mpi() {
  Thread* const me = this_record();
  if (!me || me->inside.fetch_add(1) > 0) return;
  me->selector = kernel::kAllow;
  if (me->of_library || threads_in_mpi.fetch_add(1) > 0 || !opened_in_mpi()) return;
  const Locked locked;
  if (spent_ns.load(std::memory_order_relaxed) > allowed_ns() + kHead)
    all_unseen(Unknown::budget);  // each call of MPI opens and closes pages
  const bool others = other_threads();
  for (Guard& guard : guards) {
    if (!guard.live || guard.open || !guard.opens_in_mpi()) continue;
    protect_shared(guard, PROT_READ | PROT_WRITE);
    if (others) misses(guard);
  }
}

void leave_mpi() {
  Thread* const me = this_record();
  if (!me || me->inside.fetch_sub(1) > 1) return;
  const bool last = !me->of_library && threads_in_mpi.fetch_sub(1) == 1;
  if (last && opened_in_mpi()) {
    const Locked locked;
    for (Guard& guard : guards) {
      if (!guard.live || guard.open || !guard.opens_in_mpi() || threads_in_mpi.load() > 0) continue;
      if (guard.near_stack(stack_pointer()))
        unseen(guard, Unknown::on_the_stack);
      else if (!protect_shared(guard, guard.closed()))
        unseen(guard, Unknown::not_plain_memory);
      else if (guard.sent && guard.unseen_ns)
        is_closed(guard);
    }
  }
  select_own(*me);
}

std::int64_t guarding_ns() {
  return spent_ns.load(std::memory_order_relaxed);
}

}  // namespace weft::advise
