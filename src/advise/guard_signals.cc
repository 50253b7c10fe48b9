// Implements the handlers of SIGSEGV, SIGSYS and SIGTRAP, and installs and removes them. While a
// handler runs, the thread's system calls are not redirected to the advisor.
#include "advise/guard_signals.h"

#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>

#include "advise/guard_slots.h"
#include "advise/system_calls.h"

namespace weft::advise {
namespace {

kernel::Action applications[3];
constexpr int kSignals[3] = {SIGSEGV, SIGSYS, SIGTRAP};

// Exists while a signal handler runs. Its constructor stops the redirection of this thread's system
// calls, and its destructor resumes it.
class Handler {
 public:
  Handler() : me_(this_record()) {
    if (me_) me_->selector = kernel::kAllow;
    when_ns_ = kernel::clock_ns();
  }
  ~Handler() {
    if (me_) select_own(*me_);
    spent_ns.fetch_add(kFault, std::memory_order_relaxed);
  }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  Thread* me() const { return me_; }
  std::int64_t when_ns() const { return when_ns_; }

 private:
  Thread* const me_;
  std::int64_t when_ns_;
};

#if defined(__x86_64__)

constexpr greg_t kSingleStep = 0x100;

greg_t* registers(void* context) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
}

// Returns the instruction that a signal has interrupted. behind: kFaulted or kPassed. If no
// protected page contains the top of the program's stack, the word there is stored as the return
// address. The lock of class Locked must be held.
Instruction instruction_at(void* context, std::uintptr_t behind) {
  const auto stack = static_cast<std::uintptr_t>(registers(context)[REG_RSP]);
  const auto closed = [&](const Guard& guard) { return guard.live && guard.near_stack(stack); };
  Instruction found{static_cast<std::uintptr_t>(registers(context)[REG_RIP]) + behind, 0};
  if (std::none_of(std::begin(guards), std::end(guards), closed))
    std::memcpy(&found.returns_to, pointer(stack), sizeof found.returns_to);
  return found;
}
// The instruction pointer in a signal handler is at the instruction if that has faulted, and behind
// it if it has been executed. Adding kFaulted or kPassed gives an address whose preceding byte
// belongs to the instruction in both cases.
constexpr std::uintptr_t kFaulted = 1, kPassed = 0;

// Handles an access to other memory on a page of a watched buffer. Makes the page accessible for
// this one instruction, by single-stepping it. Other threads may use the page meanwhile without
// being noticed. An access just before the buffer may reach into it, but is noticed only if it
// changes the buffer's first bytes. If the page belongs to the stack in use, the buffer is given
// up, since a thread that blocks signals could not handle its next fault there.
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

// Returns whether another thread has already made the page of this address accessible. The
// instruction that has faulted can then be repeated, and will succeed.
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

// Restores the application's signal handlers, and raises the signal again for them. It is called
// for a signal that no watched buffer has caused.
void pass_on(int signal, siginfo_t* info) {
  let_application_have_it();
  kernel::direct(SYS_rt_tgsigqueueinfo, kernel::direct(SYS_getpid), kernel::direct(SYS_gettid),
                 signal, reinterpret_cast<long>(info));
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const Handler handler;
  // With such a code the signal was sent by kill() or a similar call; no instruction has faulted.
  if (info->si_code <= 0) return pass_on(signal, info);
  const Locked locked;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guard& guard : guards) {
    if (!guard.live || guard.open || !guard.covers(address)) continue;
    // Single-stepping would cost too much for operations in flight, of which there may be
    // thousands. The pages that the buffer shares with other memory are no longer watched.
    if (!guard.has(address) && guard.flight) return loosen(guard);
    if (!guard.has(address)) return let_pass(guard, address, handler, context);
    const Instruction by = instruction_at(context, kFaulted);
    return guard.sent ? written(guard, handler.when_ns(), by)
                      : touched(guard, handler.when_ns(), by, fault_cost);
  }
  if (came_too_late(address, handler.me())) return;
  // The application itself has caused the fault. The instruction is repeated and faults again, now
  // with the application's handler in place.
  all_unseen(Unknown::own_fault);
  give_signals_back();
}

void stepped(Thread& me, void* context) {
  const Locked locked;
  spent_ns.fetch_add(kStep, std::memory_order_relaxed);
  registers(context)[REG_EFL] &= ~kSingleStep;
  for (Guard& guard : guards) {
    if (!guard.live || guard.open || !guard.covers(me.opened_page) || any_in_mpi()) continue;
    protect(me.opened_page, me.opened_page + kPage, guard.closed());
    // Single-stepping delays the program's first access to the result, so its time is subtracted.
    // If there are other threads, they do not wait for this one, and nothing is subtracted.
    if (!other_threads()) guard.lost_ns += now_ns() - me.opened_ns + 2 * kSignal;
    if (guard.sent && guard.unseen_ns) is_closed(guard, now_ns());
    if (guard.sent && std::memcmp(guard.start, pointer(guard.begin), guard.start_bytes()) != 0)
      written(guard, now_ns(), {});
  }
  me.opened_page = 0;
}

void on_trap(int signal, siginfo_t* info, void* context) {
  const Handler handler;
  constexpr int kByBreakpoint = 6;  // the value of TRAP_PERF
  if (info->si_code != kByBreakpoint) {
    Thread* const me = handler.me();
    return me && me->opened_page ? stepped(*me, context) : pass_on(signal, info);
  }
  const Locked locked;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guard& guard : guards)
    if (guard.live && guard.breakpoint >= 0 && address + kAccess > guard.begin &&
        address < guard.end)
      return touched(guard, handler.when_ns(), instruction_at(context, kPassed), breakpoint_cost);
}

// Returns the signals that the interrupted program blocks, as a mask in the kernel's format.
std::uint64_t blocked_before(void* context) {
  std::uint64_t mask = 0;
  std::memcpy(&mask, &static_cast<ucontext_t*>(context)->uc_sigmask, sizeof mask);
  return mask;
}

// Compares the memory that a redirected system call accesses with the watched buffers.
class Comparison final : public MemoryVisitor {
 public:
  // when_ns: the time of the system call. filled: whether the call only fills one range from its
  // start, as read() does. context: the signal handler's context.
  Comparison(std::int64_t when_ns, bool filled, void* context)
      : when_ns_(when_ns), filled_(filled), context_(context) {}
  void visit(std::uintptr_t begin, std::size_t bytes, bool writes) override {
    const std::uintptr_t end = begin + bytes;
    const auto meets = [&](const Guard& guard) {
      return guard.live && begin < std::max(guard.last, guard.end) &&
             std::min(guard.first, guard.begin) < end && !(guard.closed() == PROT_READ && !writes);
    };
    for (Guard& guard : guards) {
      if (!meets(guard)) continue;
      const Locked locked;
      // Another thread may have stopped watching this buffer before this thread took the lock.
      if (!meets(guard)) continue;
      const bool inside = begin < guard.end && guard.begin < end;
      if (inside && !guard.sent)
        touched(guard, when_ns_, instruction_at(context_, kPassed));
      else if (guard.sent && filled_ && !filled_guard_ && guard.not_before_ns != kInCall)
        open_for_call(guard, begin);
      else if (guard.breakpoint < 0)
        unseen(guard, inside ? Unknown::system_call : Unknown::neighbours);
    }
  }
  // Records that a system call has written a watched send buffer. It must be called when the system
  // call has returned. bytes: the number of bytes written; negative if the call has failed. If the
  // system call never returns, the buffer's pages stay writable.
  void returned(long bytes) {
    if (!filled_guard_) return;
    const Locked locked;
    Guard& guard = *filled_guard_;
    if (!guard.live || guard.set_ns != set_ns_) return;
    const std::uintptr_t end = begin_ + static_cast<std::uintptr_t>(std::max(0L, bytes));
    if (begin_ < guard.end && guard.begin < end && when_ns_ >= guard.wrote_ns) {
      note_first_write(guard, when_ns_);
      guard.wrote_ns = when_ns_;
      guard.writer = instruction_at(context_, kPassed);
    }
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
  void* const context_;
  Guard* filled_guard_ = nullptr;
  std::int64_t set_ns_ = 0;
  std::uintptr_t begin_ = 0;
};

// Makes the program repeat its system call, without redirection, when the signal handler returns.
void make_again(greg_t* r, long number) {
  constexpr int kInstruction = 2;  // length of the `syscall` instruction in bytes
  r[REG_RIP] -= kInstruction;
  r[REG_RAX] = number;
}

bool watches(int descriptor) {
  for (const Guard& guard : guards)
    if (guard.live && guard.breakpoint == descriptor) return true;
  return false;
}

void on_system_call(int signal, siginfo_t* info, void* context) {
  constexpr int kBySeccomp = 1, kDispatched = 2;  // the values of SYS_SECCOMP and SYS_USER_DISPATCH
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
  Comparison comparison(handler.when_ns(), fills, context);
  if (!(number == SYS_close && watches(static_cast<int>(arguments[0]))) &&
      memory_of_call(number, arguments, comparison) == Memory::known && live.load() > 0) {
    // The system call is made with the program's signals unblocked. A handler of the application
    // may thus interrupt it, and the system calls of that handler must be redirected as usual.
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

}  // namespace

bool handlers_open() {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    kernel::Action action{};
    if ((kernel::bit(signal) & kGuardSignals) != 0 || !kernel::get_action(signal, &action))
      continue;
    const bool caught =
        reinterpret_cast<std::uintptr_t>(action.handler) > 1;  // false for SIG_DFL and SIG_IGN
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

}  // namespace weft::advise
