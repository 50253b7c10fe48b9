// Keeps a record of each thread. Gives each thread an alternate signal stack for the advisor's
// signal handlers, if it has none.
#include "advise/threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "advise/system_calls.h"

namespace weft::advise {

constinit Thread threads[kThreads];
std::atomic<int> threads_met{0};
std::atomic<bool> several{false};
std::atomic<void (*)()> before_a_thread_leaves{nullptr};
constinit thread_local Thread* own_record __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

std::uintptr_t control_block() {
  return reinterpret_cast<std::uintptr_t>(pthread_self());
}

void find_stack(Thread& thread) {
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &begin, &bytes);
    pthread_attr_destroy(&attributes);
  }
  thread.stack.begin = reinterpret_cast<std::uintptr_t>(begin);
  thread.stack.end = thread.stack.begin + bytes;
  thread.control = control_block();
}

// The size of the alternate signal stack in bytes. It is large enough for handlers of the
// application, too.
constexpr std::size_t kSpareStack = 1 << 20;

void set_signal_stack(const stack_t& stack) {
  kernel::direct(SYS_sigaltstack, reinterpret_cast<long>(&stack));
}

}  // namespace

// Gives the thread an alternate signal stack if it has none. To start a signal handler, the kernel
// writes to the stack, and kills the program if that page is protected. This could happen without
// an alternate stack: a watched buffer may lie beside the stack of a user-level thread, which the
// advisor does not know.
void find_signal_stack(Thread& thread) {
  stack_t now{};
  kernel::direct(SYS_sigaltstack, 0, reinterpret_cast<long>(&now));
  thread.signal_stack = {};
  if ((now.ss_flags & SS_DISABLE) == 0 && now.ss_sp != thread.spare_stack) {
    const auto begin = reinterpret_cast<std::uintptr_t>(now.ss_sp);
    thread.signal_stack = {begin, begin + now.ss_size};
    return;
  }
  if (!thread.spare_stack) {
    void* const memory = mmap(nullptr, kSpareStack, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    thread.spare_stack = memory;
  }
  set_signal_stack({thread.spare_stack, 0, kSpareStack});
}

bool on_spare_stack(const Thread& thread) {
  stack_t now{};
  kernel::direct(SYS_sigaltstack, 0, reinterpret_cast<long>(&now));
  return thread.spare_stack && now.ss_sp == thread.spare_stack && (now.ss_flags & SS_DISABLE) == 0;
}

namespace {

void forget(void*) {
  if (!own_record) return;
  Thread* const leaving = own_record;
  if (const auto leaves = before_a_thread_leaves.load()) leaves();
  if (on_spare_stack(*leaving)) set_signal_stack({nullptr, SS_DISABLE, 0});
  leaving->selector = kernel::kAllow;
  rest_own(*leaving);
  own_record = nullptr;
  // The next thread that gets this entry counts as blocking signals, until it has found out whether
  // it does.
  leaving->may_block = true;
  leaving->used.store(false, std::memory_order_release);
}

pthread_key_t leaving_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, forget);
    return made;
  }();
  return key;
}

Thread* free_record() {
  for (int i = 0; i < kThreads; ++i) {
    bool used = false;
    if (!threads[i].used.compare_exchange_strong(used, true)) continue;
    int met = threads_met.load();
    while (met <= i && !threads_met.compare_exchange_weak(met, i + 1)) {
    }
    return &threads[i];
  }
  return nullptr;
}

std::atomic<bool> watcher_began{false};
void* begin_watcher(void* work) {
  if ((own_record = free_record())) {
    own_record->of_library = own_record->watcher = true;
    own_record->inside = 1;
    own_record->selector = kernel::kAllow;
    own_record->number = gettid();
    find_stack(*own_record);
    // The kernel's timer slack in ns. With the default value the thread would sleep 50 us too long.
    constexpr long kSlack = 1000;
    kernel::direct(SYS_prctl, PR_SET_TIMERSLACK, kSlack);
    own_record->may_block = false;
  }
  watcher_began = true;
  if (own_record) reinterpret_cast<void (*)()>(work)();
  return nullptr;
}

class Overlap final : public MemoryVisitor {
 public:
  explicit Overlap(Range range) : range_(range) {}
  void visit(std::uintptr_t begin, std::size_t bytes, bool) override {
    found_ |= range_.meets(begin, begin + bytes);
  }
  bool found() const { return found_; }

 private:
  const Range range_;
  bool found_ = false;
};

// Returns whether the thread may be in a system call that accesses this memory. /proc tells either
// "running", or the number and arguments of the system call, or -1 if the thread sleeps outside of
// a system call.
bool may_be_in_call(const Thread& thread, std::uintptr_t begin, std::uintptr_t end) {
  char path[64], text[256] = "";
  std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", static_cast<int>(thread.number));
  const long file = kernel::direct(SYS_open, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  kernel::direct(SYS_read, file, reinterpret_cast<long>(text), sizeof text - 1);
  kernel::direct(SYS_close, file);
  char* rest = text;
  const long number = std::strtol(text, &rest, 10);
  if (rest == text) return true;
  if (number < 0) return false;
  long arguments[6] = {};
  for (long& argument : arguments) argument = static_cast<long>(std::strtoul(rest, &rest, 16));
  Overlap overlap({begin, end});
  return memory_of_call(number, arguments, overlap) != Memory::known || overlap.found();
}

}  // namespace

bool know_this_thread(bool of_library) {
  if (own_record) return true;
  Thread* const thread = kernel::kCanGuard ? free_record() : nullptr;
  if (!thread) return false;
  thread->selector = kernel::kAllow;
  thread->of_library = of_library;
  thread->watcher = false;
  thread->inside = 0;
  thread->number = gettid();
  thread->opened_page = thread->late_fault = 0;
  find_stack(*thread);
  find_signal_stack(*thread);
  if (!dispatch_own(*thread)) {
    thread->used = false;
    return false;
  }
  if (!of_library && !several.load()) rest_own(*thread);
  own_record = thread;
  pthread_setspecific(leaving_key(), thread);
  thread->may_block = (kernel::blocked() & kGuardSignals) != 0;
  return true;
}

bool dispatch_own(Thread& me) {
  if (!me.dispatched.load()) me.dispatched = kernel::dispatch(&me.selector);
  return me.dispatched.load();
}

void rest_own(Thread& me) {
  if (!me.dispatched.load()) return;
  me.dispatched = false;
  kernel::dispatch_no_more();
}

bool start_watcher(void (*work)()) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  const std::uint64_t mask = kernel::block_all();
  pthread_t thread;
  const bool started = create(&thread, nullptr, begin_watcher, reinterpret_cast<void*>(work)) == 0;
  if (started) pthread_detach(thread);
  while (started && !watcher_began) kernel::direct(SYS_sched_yield);
  kernel::block_these(mask);
  return started;
}

bool all_known_and_open() {
  unsigned long known = 0;
  for (const Thread& thread : known_threads()) {
    if (!thread.used.load(std::memory_order_acquire)) continue;
    ++known;
    if (thread.may_block.load(std::memory_order_seq_cst)) return false;
    if (!thread.watcher && !thread.dispatched.load()) return false;
  }
  struct stat tasks;
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == known + 2;
}

bool of_a_thread(std::uintptr_t begin, std::uintptr_t end) {
  // The sizes in bytes of the thread-local variables (below the control block) and of the thread's
  // descriptor (above).
  constexpr std::uintptr_t kBefore = 64 << 10, kAfter = 8 << 10;
  for (const Thread& thread : known_threads()) {
    if (!thread.used.load(std::memory_order_acquire)) continue;
    if (thread.stack.meets(begin, end) || thread.signal_stack.meets(begin, end)) return true;
    // The control block of every thread except the main one is on the thread's stack, which was
    // checked above. A buffer may lie directly above that stack, and may be watched.
    if (thread.stack.meets(thread.control, thread.control + 1)) continue;
    if (begin < thread.control + kAfter && thread.control - kBefore < end) return true;
  }
  return false;
}

bool in_calls_elsewhere(std::uintptr_t begin, std::uintptr_t end) {
  for (const Thread& thread : known_threads())
    if (thread.used.load(std::memory_order_acquire) && &thread != own_record && !thread.watcher &&
        may_be_in_call(thread, begin, end))
      return true;
  return false;
}

}  // namespace weft::advise
