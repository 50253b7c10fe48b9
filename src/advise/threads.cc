// Threads are met where they start (pthread_create). What blocks signals for a moment, or starts a
// process, is announced before it happens, and ends all guards: a guard that were set meanwhile
// would turn the thread's next system call into its death.
#include "advise/threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "advise/guard.h"
#include "interpose/this_thread.h"

#define WEFT_SHOWN extern "C" __attribute__((visibility("default")))

namespace weft::advise {

constinit Thread threads[kThreads];

namespace {

constinit thread_local Thread* own __attribute__((tls_model("initial-exec"))) = nullptr;

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
  thread.stack_begin = reinterpret_cast<std::uintptr_t>(begin);
  thread.stack_end = thread.stack_begin + bytes;
  thread.control = control_block();
}

void forget(void*) {
  if (!own) return;
  Thread* const leaving = own;
  release_all_guards(Unknown::threads);
  leaving->selector = kernel::kAllow;
  kernel::dispatch_no_more();
  own = nullptr;
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
  for (Thread& thread : threads) {
    bool used = false;
    if (thread.used.compare_exchange_strong(used, true)) return &thread;
  }
  return nullptr;
}

struct Start {
  void* (*routine)(void*);
  void* argument;
  bool of_library;
};

void* begin_thread(void* data) {
  const Start start = *static_cast<Start*>(data);
  free(data);
  // The library's may have inherited a mask that blocks everything.
  if (start.of_library) kernel::block_these(kernel::blocked() & ~kGuardSignals);
  know_this_thread(start.of_library);
  return start.routine(start.argument);
}

// Lives while this thread may block signals of a guard. Pairs with the order in which a guard is
// set: it announces itself, then looks at may_block.
class MayBlock {
 public:
  MayBlock() {
    if (!own) return;
    own->may_block.store(true, std::memory_order_seq_cst);
    if (guards_exist()) release_all_guards(Unknown::signals);
  }
  ~MayBlock() {
    if (own) own->may_block.store((kernel::blocked() & kGuardSignals) != 0);
  }
  MayBlock(const MayBlock&) = delete;
  MayBlock& operator=(const MayBlock&) = delete;
};

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

Thread* this_record() {
  return own;
}

bool know_this_thread(bool of_library) {
  if (own) return true;
  Thread* const thread = kernel::kCanGuard ? free_record() : nullptr;
  if (!thread) return false;
  thread->selector = kernel::kAllow;
  thread->of_library = of_library;
  thread->inside = 0;
  thread->opened_page = thread->late_fault = 0;
  thread->may_block = (kernel::blocked() & kGuardSignals) != 0;
  find_stack(*thread);
  if (!kernel::dispatch(&thread->selector)) {
    thread->used = false;
    return false;
  }
  own = thread;
  pthread_setspecific(leaving_key(), thread);
  return true;
}

bool all_known_and_open() {
  unsigned long known = 0;
  for (const Thread& thread : threads) {
    if (!thread.used.load(std::memory_order_acquire)) continue;
    ++known;
    if (thread.may_block.load(std::memory_order_seq_cst)) return false;
  }
  struct stat tasks;
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == known + 2;
}

bool of_a_thread(std::uintptr_t begin, std::uintptr_t end) {
  constexpr std::uintptr_t kBefore = 64 << 10, kAfter = 8 << 10;  // its variables; its descriptor
  for (const Thread& thread : threads) {
    if (!thread.used.load(std::memory_order_acquire)) continue;
    if (begin < thread.stack_end && thread.stack_begin < end) return true;
    if (begin < thread.control + kAfter && thread.control - kBefore < end) return true;
  }
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
  *start = {routine, argument, (weft::interpose::this_thread & weft::interpose::kInside) != 0};
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

WEFT_SHOWN pid_t fork() noexcept {
  NEXT(fork);
  const MayBlock announced;
  const pid_t child = call();
  if (child == 0) weft::advise::guards_in_child();
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
