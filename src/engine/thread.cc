// The signal mask is inherited at creation, so it is set around it. What a thread's own
// instructions raise stays open: blocked, it would end the process, while the application may have
// a handler that tracks its pages, or traps its floating-point errors, whichever thread touches
// them.
#include "engine/thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

namespace weft {

Result<bool> start_thread(std::thread& thread, std::function<void()> main) {
  sigset_t asynchronous, before;
  sigfillset(&asynchronous);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    sigdelset(&asynchronous, own);
  pthread_sigmask(SIG_SETMASK, &asynchronous, &before);
  Result<bool> started = true;
  try {
    thread = std::thread(std::move(main));
  } catch (const std::system_error& error) {
    started = Error{error.code().message()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace weft
