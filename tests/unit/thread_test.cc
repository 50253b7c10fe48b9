// Which signals reach Weft's threads.
#include "engine/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <cstddef>

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
  Thread thread;
  ASSERT_TRUE(thread.start([&] { inside = mask_of_this_thread(); }));
  thread.join();
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    EXPECT_FALSE(sigismember(&inside, own)) << own;
  for (const int other : {SIGALRM, SIGTERM, SIGINT, SIGUSR1, SIGPROF, SIGCHLD})
    EXPECT_TRUE(sigismember(&inside, other)) << other;
  const sigset_t after = mask_of_this_thread();
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
}

TEST(Thread, RunsOnTheStackThatItIsGivenIfThatIsLongEnough) {
  static std::array<std::byte, 1024 * 1024> stack;  // the thread sanitizer needs most of it
  for (const std::size_t bytes : {stack.size(), std::size_t{64}}) {
    const std::span given(stack.data(), bytes);
    const std::byte* inside = nullptr;
    Thread thread;
    ASSERT_TRUE(thread.start(
        [&] {
          const std::byte here{};
          inside = &here;
        },
        given));
    EXPECT_TRUE(thread.is_started());
    thread.join();
    EXPECT_FALSE(thread.is_started());
    EXPECT_EQ(inside >= given.data() && inside < given.data() + bytes, bytes == stack.size());
  }
}

}  // namespace
}  // namespace weft
