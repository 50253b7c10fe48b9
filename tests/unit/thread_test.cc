// Which signals reach a thread of Weft's.
#include "engine/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

namespace weft {
namespace {

sigset_t mask_of_this_thread() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

TEST(Thread, TakesNoSignalsButThoseOfItsOwnInstructions) {
  const sigset_t before = mask_of_this_thread();
  sigset_t inside;
  std::thread thread;
  ASSERT_TRUE(start_thread(thread, [&] { inside = mask_of_this_thread(); }));
  thread.join();
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    EXPECT_FALSE(sigismember(&inside, own)) << own;
  for (const int other : {SIGALRM, SIGTERM, SIGINT, SIGUSR1, SIGPROF, SIGCHLD})
    EXPECT_TRUE(sigismember(&inside, other)) << other;
  const sigset_t after = mask_of_this_thread();
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
}

}  // namespace
}  // namespace weft
