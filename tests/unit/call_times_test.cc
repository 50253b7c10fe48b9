// Which of many short calls `weft advise` times, and that their number stays exact.
#include "advise/call_times.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace weft::advise {
namespace {

constexpr std::uint64_t kCallsMade = 16'000;

// Makes one call of `ns` nanoseconds.
void call_once(CallTotal& total, CallId id, Waits waits, std::int64_t ns) {
  if (is_timed(id, waits)) count_timed(total, id, ns);
}

CallTotal after_calls(CallId id, Waits waits, std::int64_t ns) {
  CallTotal total{};
  for (std::uint64_t i = 0; i < kCallsMade; ++i) call_once(total, id, waits, ns);
  count_rest(total, id);
  return total;
}

TEST(CallTimes, ShortCallsThatNeverWaitAreTimedOnceInSixteen) {
  const CallTotal total = after_calls(CallId::Iprobe, Waits::never, 200);
  EXPECT_EQ(total.calls, kCallsMade);
  EXPECT_GE(total.timed, kCallsMade / 20);
  EXPECT_LE(total.timed, kCallsMade / 12);
  EXPECT_GT(total.variance_ns2, 0);
  // The total contains all calls except those after the last timed one.
  EXPECT_LE(total.ns, kCallsMade * 200);
  EXPECT_GE(total.ns, (kCallsMade - 32) * 200);
}

TEST(CallTimes, LongCallsAreAllTimed) {
  const CallTotal total = after_calls(CallId::Test, Waits::never, 50'000);
  EXPECT_EQ(total.timed, kCallsMade);
  EXPECT_EQ(total.calls, kCallsMade);
  EXPECT_EQ(total.ns, kCallsMade * 50'000);
  EXPECT_EQ(total.variance_ns2, 0);
}

TEST(CallTimes, CallsThatMayWaitAreAllTimed) {
  const CallTotal total = after_calls(CallId::Wait, Waits::perhaps, 200);
  EXPECT_EQ(total.timed, kCallsMade);
  EXPECT_EQ(total.calls, kCallsMade);
}

TEST(CallTimes, ALongCallIsFollowedByTimedOnes) {
  CallTotal total{};
  constexpr CallId kId = CallId::Testall;
  for (int i = 0; i < 1000; ++i) call_once(total, kId, Waits::never, 200);
  const std::uint64_t before = total.timed;
  EXPECT_LT(before, 200U);
  while (!is_timed(kId, Waits::never)) {
  }
  count_timed(total, kId, 40'000);
  for (std::uint64_t i = 0; i < kFirst - 1; ++i) call_once(total, kId, Waits::never, 200);
  EXPECT_EQ(total.timed, before + kFirst);
}

TEST(CallTimes, TheNumberIsExactWithSeveralThreads) {
  CallTotal total{};
  std::mutex lock;
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t call = 0; call < kCallsMade; ++call) {
        if (!is_timed(CallId::Testany, Waits::never)) continue;
        const std::lock_guard held(lock);
        count_timed(total, CallId::Testany, 200);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  count_rest(total, CallId::Testany);
  EXPECT_EQ(total.calls, kThreads * kCallsMade);
}

}  // namespace
}  // namespace weft::advise
