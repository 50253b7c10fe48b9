// Wraps pthread_create() to register threads when they start. Also wraps calls that block signals
// or start a process: before such a call, all watched buffers are given up. If a thread that blocks
// SIGSEGV or SIGSYS met a protected page, the kernel would kill the program.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "advise/guard.h"
#include "advise/recorder.h"
#include "advise/threads.h"
#include "base/this_thread.h"

#define WEFT_SHOWN extern "C" __attribute__((visibility("default")))

namespace weft::advise {
namespace {

struct Start {
  void* (*routine)(void*);
  void* argument;
  bool of_library;
};

// The signals that threads of the MPI library block. They block all but the signals by which the
// advisor notices accesses, those that their own instructions raise, and two of the C library. All
// others belong to the application: while its thread runs a signal handler of the advisor with all
// signals blocked, the kernel would otherwise deliver them to such a thread.
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

// Announces that this thread may block the signals by which the advisor notices accesses, as long
// as the object lives. The thread first sets may_block and then looks for watched buffers. A thread
// that begins to watch a buffer first raises `live` and then reads may_block. Thus at least one of
// them sees the other.
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

// Notes that the application starts another thread. From then on the system calls of all its
// threads are always redirected to the advisor, since any thread may begin to watch a buffer at any
// time.
void another_thread_begins() {
  several = true;
  if (own_record && !own_record->of_library) dispatch_own(*own_record);
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace
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

// Wraps sigaltstack() so that the application does not see the signal stack that the advisor has
// set.
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
    // Nothing is recorded in the child. A thread that does not exist there may hold the recorder's
    // lock.
    weft::advise::recorder.stop();
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
