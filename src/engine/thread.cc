// The signal mask is inherited at creation, so it is set around it.
#include "engine/thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

namespace weft {

Result<bool> start_thread(std::thread& thread, std::function<void()> main) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
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
