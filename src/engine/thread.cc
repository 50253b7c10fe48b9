// The signal mask is inherited at creation, so it is set around it.
#include "engine/thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

#include "base/log.h"

namespace weft {

bool start_thread(std::thread& thread, std::function<void()> main) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    thread = std::thread(std::move(main));
  } catch (const std::system_error& error) {
    say(std::string("no progress thread (") + error.what() +
        "); collectives go on inside MPI calls only. Raise 'ulimit -u' to get one.");
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace weft
