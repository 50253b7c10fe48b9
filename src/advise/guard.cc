// Setting guards, and the three signals that end them: SIGSEGV (a closed page), SIGSYS (a system
// call) and SIGTRAP (a breakpoint, or the one instruction that was let pass beside a result). The
// handlers stay in place when the last guard has ended, since another thread's fault may be on its
// way. A fault that is not a guard's ends all guards, gives the application its handlers back, and
// happens again; so does every call that sets a handler. One lock orders everything; who holds it
// has all signals blocked and touches no memory but this file's.
#include "advise/guard.h"

#include <fcntl.h>
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
#include "advise/system_calls.h"
#include "advise/threads.h"
#include "base/clock.h"

namespace weft::advise {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr int kGuards = 4;
constexpr int kNeighbours = 16;      // accesses beside a result that are let pass
constexpr std::size_t kAccess = 64;  // bytes that one instruction may touch at once
constexpr std::int64_t kLongest = INT64_C(10'000'000'000);
constexpr std::int64_t kSetting = 60'000, kPerPage = 400, kHead = 2'000'000;  // ns
constexpr std::int64_t kSignal = 1'500;  // ns that the kernel needs for one

struct Guard {
  bool live;
  Site* site;
  std::uintptr_t begin, end;   // the result
  std::uintptr_t first, last;  // its pages
  int breakpoint;              // its descriptor; -1: pages
  int neighbours;
  std::int64_t near_ns;  // of the first access that may have reached into the result; or 0
  std::int64_t set_ns;

  bool has(std::uintptr_t address) const { return address >= begin && address < end; }
  bool covers(std::uintptr_t address) const {
    return breakpoint < 0 && address >= first && address < last;
  }
  // Whether its first and its last page hold other memory, too.
  bool shares_first() const { return begin != first; }
  bool shares_last() const { return end != last; }
  bool near_stack(std::uintptr_t pointer) const {
    return breakpoint < 0 && pointer + kPage > first && pointer < last + kPage;
  }
  bool shares_pages() const { return breakpoint < 0 && (shares_first() || shares_last()); }
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

// Whether this thread's system calls are dispatched. Others only ever switch that on, after they
// have raised `live`; so what was read before is looked at again.
void select_own(Thread& me) {
  const auto wanted = [&] { return me.inside.load() == 0 && live.load() > 0; };
  bool block = false;
  do {
    block = wanted();
    me.selector = block ? kernel::kBlock : kernel::kAllow;
  } while (!block && wanted());
}

// Holds the lock, with this thread's signals blocked. Its system calls are let through once it has
// it, since who had it before may have switched them.
class Locked {
 public:
  Locked() : mask_(kernel::block_all()), me_(this_record()) {
    while (lock_flag.test_and_set(std::memory_order_acquire)) {
    }
    if (me_) me_->selector = kernel::kAllow;
    began_ = now_ns();
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
  const std::uint64_t mask_;
  Thread* const me_;
  std::int64_t began_;
};

bool protect(std::uintptr_t first, std::uintptr_t last, int protection) {
  return kernel::direct(SYS_mprotect, static_cast<long>(first), static_cast<long>(last - first),
                        protection) == 0;
}
void open_pages(std::uintptr_t first, std::uintptr_t last) {
  protect(first, last, PROT_READ | PROT_WRITE);
}

// The pages that a guard shares with other memory.
bool protect_shared(const Guard& guard, int protection) {
  bool done = true;
  if (guard.shares_first()) done = protect(guard.first, guard.first + kPage, protection);
  if (guard.shares_last()) done = protect(guard.last - kPage, guard.last, protection) && done;
  return done;
}

// Those that hold nothing but the result.
bool close_inner(const Guard& guard) {
  const std::uintptr_t first = guard.first + (guard.shares_first() ? kPage : 0);
  const std::uintptr_t last = guard.last - (guard.shares_last() ? kPage : 0);
  return first >= last || protect(first, last, PROT_NONE);
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

void unseen(Guard& guard, Unknown why) {
  ++guard.site->unknown[static_cast<int>(why)];
  end_guard(guard);
}

void all_unseen(Unknown why) {
  for (Guard& guard : guards)
    if (guard.live) unseen(guard, why);
}

std::uint64_t random_number() {
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return chance;
}

// Whether it matters that the first touch may have been a little earlier.
bool is_exact(const Guard& guard, std::int64_t when_ns) {
  constexpr std::int64_t kLittle = 20'000, kParts = 50;  // 20 us, 2 per cent
  return !guard.near_ns ||
         when_ns - guard.near_ns <= std::max(kLittle, (when_ns - guard.set_ns) / kParts);
}

// Each window has the same chance to be kept.
void touched(Guard& guard, std::int64_t when_ns) {
  if (!is_exact(guard, when_ns)) return unseen(guard, Unknown::neighbours);
  Site& site = *guard.site;
  const std::uint64_t place =
      site.windows < kWindows ? site.windows : random_number() % (site.windows + 1);
  if (place < kWindows) site.window_ns[place] = when_ns - guard.set_ns;
  ++site.windows;
  end_guard(guard);
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

// An access beside the result: its page is opened for this one instruction. Right before the result
// it may be the begin of one that reaches into it. A page that serves as a stack stays open, since
// who blocks signals there could not go on.
void let_pass(Guard& guard, std::uintptr_t address, Thread* me, void* context) {
  if (guard.near_stack(static_cast<std::uintptr_t>(registers(context)[REG_RSP])))
    return unseen(guard, Unknown::on_the_stack);
  if (address < guard.begin && guard.begin - address < kAccess && !guard.near_ns)
    guard.near_ns = now_ns();
  if (!me || me->opened_page || ++guard.neighbours > kNeighbours)
    return unseen(guard, Unknown::neighbours);
  me->opened_page = address & ~(kPage - 1);
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
    if (!guard.live || !guard.covers(address)) continue;
    if (!guard.has(address)) return let_pass(guard, address, handler.me(), context);
    return touched(guard, handler.when_ns());
  }
  if (came_too_late(address, handler.me())) return;
  // Somebody else's: it happens again, with the application's own handler.
  all_unseen(Unknown::own_fault);
  give_signals_back();
}

void stepped(Thread& me, void* context) {
  const Locked locked;
  registers(context)[REG_EFL] &= ~kSingleStep;
  for (const Guard& guard : guards)
    if (guard.live && guard.covers(me.opened_page) && threads_in_mpi.load() == 0)
      protect(me.opened_page, me.opened_page + kPage, PROT_NONE);
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
  Comparison(std::int64_t when_ns) : when_ns_(when_ns) {}
  void visit(std::uintptr_t begin, std::size_t bytes) override {
    const std::uintptr_t end = begin + bytes;
    for (Guard& guard : guards) {
      if (!guard.live || begin >= guard.last || guard.first >= end) continue;
      const Locked locked;
      if (!guard.live) continue;
      if (begin < guard.end && guard.begin < end)
        touched(guard, when_ns_);
      else if (guard.breakpoint < 0)
        unseen(guard, Unknown::neighbours);
    }
  }

 private:
  const std::int64_t when_ns_;
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
  Comparison comparison(handler.when_ns());
  if (!(number == SYS_close && watches(static_cast<int>(arguments[0]))) &&
      memory_of_call(number, arguments, comparison) == Memory::known && live.load() > 0) {
    // Interruptible, and with the calls of the application's handlers dispatched as before.
    if (handler.me()) select_own(*handler.me());
    kernel::block_these(blocked_before(context));
    r[REG_RAX] = kernel::direct(number, arguments[0], arguments[1], arguments[2], arguments[3],
                                arguments[4], arguments[5]);
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

std::uintptr_t stack_pointer() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

// This thread's, or the one that it runs on now.
bool on_this_stack(const Guard& guard) {
  const Thread* const me = this_record();
  return me->stack.meets(guard.begin, guard.end) || guard.near_stack(stack_pointer());
}

bool other_threads() {
  int others = 0;
  for (const Thread& thread : threads) others += thread.used.load() && !thread.of_library;
  return others > 1;
}

// Whether and how the result can be watched; breakpoint < 0: by its pages.
Unknown judge(const Guard& guard, bool small, bool may_share) {
  if (small) return other_threads() ? Unknown::threads : Unknown::none;
  if (on_this_stack(guard)) return Unknown::on_the_stack;
  if (of_a_thread(guard.first, guard.last)) return Unknown::not_plain_memory;
  if (!may_share && (guard.shares_first() || guard.shares_last())) return Unknown::shared_page;
  return plain_memory(guard.first, guard.last);
}

// A slot whose guard has ended, or has waited too long; and none on these pages.
Guard* free_guard(std::uintptr_t first, std::uintptr_t last) {
  Guard* found = nullptr;
  for (Guard& guard : guards) {
    if (guard.live && now_ns() - guard.set_ns > kLongest) unseen(guard, Unknown::never_touched);
    if (!guard.live)
      found = &guard;
    else if (first < guard.last && guard.first < last)
      return nullptr;
  }
  return found;
}

Unknown set(Guard& slot, const Guard& wanted, bool small) {
  if (live.load() == 0) {
    if (!handlers_open()) return Unknown::signals;
    catch_signals();
  }
  live.fetch_add(1);
  slot = wanted;
  slot.live = true;
  slot.breakpoint = small ? breakpoint_on(wanted.begin, wanted.end - wanted.begin) : -1;
  const bool done = small ? slot.breakpoint >= 0 : close_inner(slot);
  Unknown why = done ? Unknown::none : small ? Unknown::breakpoint : Unknown::not_plain_memory;
  // After `live` is seen: whoever blocks signals from now on ends this guard first.
  for (Thread& thread : threads)
    if (thread.used && thread.inside.load() == 0) thread.selector = kernel::kBlock;
  if (done &&
      (!all_known_and_open() || (slot.shares_pages() && in_calls_elsewhere(slot.first, slot.last))))
    why = Unknown::threads;
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

// Whether some guard's pages hold other memory, too. Without the lock: what ends meanwhile is
// looked at again with it, and none begins but in a call of MPI.
bool pages_shared() {
  if (live.load() == 0) return false;
  for (const Guard& guard : guards)
    if (guard.live && guard.shares_pages()) return true;
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

void guard(Site& site, const void* result, std::size_t bytes, bool may_share) {
  const auto begin = reinterpret_cast<std::uintptr_t>(result);
  const std::uintptr_t end = begin + bytes;
  Guard wanted{false, &site, begin, end, begin & ~(kPage - 1), (end + kPage - 1) & ~(kPage - 1),
               -1,    0,     0,     0};
  const bool small = fits_breakpoint(begin, bytes);
  if (small) {
    wanted.first = begin;
    wanted.last = end;
  }
  const Locked locked;
  Guard* const slot = free_guard(wanted.first, wanted.last);
  if (!slot) return;
  Unknown why =
      (locked.mask() & kGuardSignals) != 0 ? Unknown::signals : judge(wanted, small, may_share);
  if (why == Unknown::none) why = set(*slot, wanted, small);
  if (why != Unknown::none) {
    ++site.unknown[static_cast<int>(why)];
    return;
  }
  slot->set_ns = now_ns();
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
  if (!pages_shared()) return;
  const Locked locked;
  for (Guard& guard : guards)
    if (guard.live && guard.shares_pages()) unseen(guard, Unknown::shared_page);
}

void application_sets_handler(int signal) {
  if (signal > SIGSYS || (kernel::bit(signal) & kGuardSignals) == 0) return;
  const Locked locked;
  all_unseen(Unknown::own_fault);
  give_signals_back();
}

void guards_in_child() {
  for (Guard& guard : guards) {
    if (guard.live && guard.breakpoint < 0) open_pages(guard.first, guard.last);
    guard.live = false;
  }
  live = 0;
  lock_flag.clear();
}

void given_to_mpi(const void* pointer, std::size_t bytes) {
  const std::int64_t when_ns = now_ns();
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  for (Guard& guard : guards) {
    if (!guard.live || begin >= guard.end) continue;
    const bool inside = begin >= guard.begin;
    if (bytes != SIZE_MAX && begin + bytes <= guard.begin) continue;
    const Locked locked;
    if (!guard.live) continue;
    if (inside || bytes != SIZE_MAX)
      touched(guard, when_ns);
    else
      unseen(guard, Unknown::mpi_call);
  }
}

void enter_mpi() {
  Thread* const me = this_record();
  if (!me || me->inside.fetch_add(1) > 0) return;
  me->selector = kernel::kAllow;
  if (me->of_library || threads_in_mpi.fetch_add(1) > 0 || !pages_shared()) return;
  const Locked locked;
  if (spent_ns.load(std::memory_order_relaxed) > allowed_ns() + kHead)
    all_unseen(Unknown::budget);  // each call of MPI opens and closes pages
  for (const Guard& guard : guards)
    if (guard.live && guard.shares_pages()) protect_shared(guard, PROT_READ | PROT_WRITE);
}

void leave_mpi() {
  Thread* const me = this_record();
  if (!me || me->inside.fetch_sub(1) > 1) return;
  const bool last = !me->of_library && threads_in_mpi.fetch_sub(1) == 1;
  if (last && pages_shared()) {
    const Locked locked;
    for (Guard& guard : guards) {
      if (!guard.live || !guard.shares_pages() || threads_in_mpi.load() > 0) continue;
      if (guard.near_stack(stack_pointer()))
        unseen(guard, Unknown::on_the_stack);
      else if (!protect_shared(guard, PROT_NONE))
        unseen(guard, Unknown::not_plain_memory);
    }
  }
  select_own(*me);
}

std::int64_t guarding_ns() {
  return spent_ns.load(std::memory_order_relaxed);
}

}  // namespace weft::advise
