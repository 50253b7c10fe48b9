// Registers threads where they start (pthread_create). Whatever blocks signals for a moment, or
// starts a process, is announced beforehand and ends all guards: with a guard set meanwhile, the
// thread's next system call would end the program.
#include "advise/threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "advise/guard.h"
#include "advise/recorder.h"
#include "advise/system_calls.h"
#include "base/this_thread.h"

#define WEFT_SHOWN extern "C" __attribute__((visibility("default")))

namespace weft::advise {

constinit Thread threads[kThreads];
std::atomic<int> threads_met{0};
std::atomic<bool> several{false};
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

constexpr std::size_t kSpareStack = 1 << 20;  // as much as handlers of the application's may need

void set_signal_stack(const stack_t& stack) {
  kernel::direct(SYS_sigaltstack, reinterpret_cast<long>(&stack));
}

// Gives the thread an alternate signal stack. The kernel puts a handler's frame on the stack in
// use, and ends the program if that page is closed; a result may lie beside the stack of a
// user-level thread, which nobody knows of.
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

void forget(void*) {
  if (!own_record) return;
  Thread* const leaving = own_record;
  release_all_guards(Unknown::threads);
  if (on_spare_stack(*leaving)) set_signal_stack({nullptr, SS_DISABLE, 0});
  leaving->selector = kernel::kAllow;
  rest_own(*leaving);
  own_record = nullptr;
  leaving->may_block = true;  // as it is to be for the next one, until that is known
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

struct Start {
  void* (*routine)(void*);
  void* argument;
  bool of_library;
};

// Threads of the library only take the signals that guards need, those raised by their own
// instructions, and the C library's two. All others are the application's: while its own thread is
// in one of our handlers, the kernel would deliver them to such a thread.
constexpr std::uint64_t kLibrarysMask =
    ~(kGuardSignals | kernel::bit(SIGBUS) | kernel::bit(SIGFPE) | kernel::bit(SIGILL) |
      kernel::bit(32) | kernel::bit(33));

void* begin_thread(void* data) {
  const Start start = *static_cast<Start*>(data);
  free(data);
  if (start.of_library) kernel::block_these(kLibrarysMask);
  know_this_thread(start.of_library);
  return start.routine(start.argument);
}

std::atomic<bool> watcher_began{false};
void* begin_watcher(void* work) {
  if ((own_record = free_record())) {
    own_record->of_library = own_record->watcher = true;
    own_record->inside = 1;
    own_record->selector = kernel::kAllow;
    own_record->number = gettid();
    find_stack(*own_record);
    constexpr long kSlack = 1000;  // ns: the kernel's own would let it oversleep by 50 us
    kernel::direct(SYS_prctl, PR_SET_TIMERSLACK, kSlack);
    own_record->may_block = false;
  }
  watcher_began = true;
  if (own_record) reinterpret_cast<void (*)()>(work)();
  return nullptr;
}

// Lives while this thread may block signals of a guard. It pairs with the order in which a guard is
// set: the guard is announced first, and may_block is read afterwards.
class MayBlock {
 public:
  MayBlock() {
    if (!own_record) return;
    own_record->may_block.store(true, std::memory_order_seq_cst);
    if (guards_exist()) release_all_guards(Unknown::signals);
  }
  ~MayBlock() {
    if (own_record) own_record->may_block.store((kernel::blocked() & kGuardSignals) != 0);
  }
  MayBlock(const MayBlock&) = delete;
  MayBlock& operator=(const MayBlock&) = delete;
};

int change_signal_stack(int (*call)(const stack_t*, stack_t*), const stack_t* wanted,
                        stack_t* old) {
  const bool ours = own_record && on_spare_stack(*own_record);
  const int code = ours && !wanted ? 0 : call(wanted, ours ? nullptr : old);
  if (code != 0) return code;
  if (ours && old) *old = {nullptr, SS_DISABLE, 0};
  if (own_record) find_signal_stack(*own_record);
  return code;
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

// Returns whether the thread may be in a system call with this memory. The kernel says "running",
// or a call's number and arguments; -1 means that the thread sleeps outside any call.
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

// Is called when the application starts another thread: from now on the system calls of all its
// threads are dispatched all the time, since each may set a guard at any time.
void another_thread_begins() {
  several = true;
  if (own_record && !own_record->of_library) dispatch_own(*own_record);
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
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
  static const auto create = next(&pthread_create, "pthread_create");
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
  constexpr std::uintptr_t kBefore = 64 << 10, kAfter = 8 << 10;  // its variables; its descriptor
  for (const Thread& thread : known_threads()) {
    if (!thread.used.load(std::memory_order_acquire)) continue;
    if (thread.stack.meets(begin, end) || thread.signal_stack.meets(begin, end)) return true;
    // All threads but the first have these on their stack, and a result may lie right above.
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

using weft::advise::MayBlock;
using weft::advise::next;

#define NEXT(name) static const auto call = next(&name, #name)

WEFT_SHOWN int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*routine)(void*), void* argument) {
  NEXT(pthread_create);
  using weft::advise::Start;
  auto* start = static_cast<Start*>(malloc(sizeof(Start)));
  if (!start) return call(thread, attributes, routine, argument);
  *start = {routine, argument, weft::this_thread.is_inside()};
  if (!start->of_library) weft::advise::another_thread_begins();
  const MayBlock announced;
  const int code = call(thread, attributes, weft::advise::begin_thread, start);
  if (code != 0) free(start);
  return code;
}

WEFT_SHOWN int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  NEXT(pthread_sigmask);
  const MayBlock announced;
  return call(how, set, old);
}

WEFT_SHOWN int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  NEXT(sigprocmask);
  const MayBlock announced;
  return call(how, set, old);
}

WEFT_SHOWN int sigaction(int signal, const struct sigaction* action,
                         struct sigaction* old) noexcept {
  static const auto call = next(
      static_cast<int (*)(int, const struct sigaction*, struct sigaction*)>(nullptr), "sigaction");
  if (signal > 0) weft::advise::application_sets_handler(signal);
  return call(signal, action, old);
}

WEFT_SHOWN sighandler_t signal(int number, sighandler_t handler) noexcept {
  NEXT(signal);
  if (number > 0) weft::advise::application_sets_handler(number);
  return call(number, handler);
}

// Hides the advisor's signal stack from the application.
WEFT_SHOWN int sigaltstack(const stack_t* wanted, stack_t* old) noexcept {
  NEXT(sigaltstack);
  const MayBlock announced;
  return weft::advise::change_signal_stack(call, wanted, old);
}

WEFT_SHOWN pid_t fork() noexcept {
  NEXT(fork);
  const MayBlock announced;
  weft::advise::fork_begins();
  const pid_t child = call();
  weft::advise::fork_ended();
  if (child == 0) {
    weft::advise::guards_in_child();
    weft::advise::recorder.stop();  // another thread may have held its lock
  }
  return child;
}

WEFT_SHOWN int system(const char* command) {
  NEXT(system);
  const MayBlock announced;
  return call(command);
}

WEFT_SHOWN FILE* popen(const char* command, const char* mode) {
  NEXT(popen);
  const MayBlock announced;
  return call(command, mode);
}

WEFT_SHOWN int posix_spawn(pid_t* process, const char* path,
                           const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, char* const* arguments,
                           char* const* environment) {
  NEXT(posix_spawn);
  const MayBlock announced;
  return call(process, path, actions, attributes, arguments, environment);
}

WEFT_SHOWN int posix_spawnp(pid_t* process, const char* file,
                            const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const* arguments,
                            char* const* environment) {
  NEXT(posix_spawnp);
  const MayBlock announced;
  return call(process, file, actions, attributes, arguments, environment);
}
