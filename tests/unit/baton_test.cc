// Threads that take turns on a core: who is called, who sleeps, and for how long.
#include "engine/baton.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "engine/pace.h"

namespace weft {
namespace {

constexpr std::int64_t kForever_ns = 600'000'000'000;

struct Core {
  std::shared_ptr<std::array<Baton::Place, 3>> places =
      std::make_shared<std::array<Baton::Place, 3>>();

  Baton thread(std::size_t own, std::vector<std::size_t> others) {
    std::vector<Baton::Place*> called;
    for (const std::size_t other : others) called.push_back(&(*places)[other]);
    return {places, &(*places)[own], called};
  }
  bool sleeps(std::size_t thread) const { return (*places)[thread].sleeps.load() != 0; }
};

TEST(Baton, ASleepingThreadIsCalledByAnotherOnItsCore) {
  Core core;
  Baton first = core.thread(0, {1}), second = core.thread(1, {0});
  const std::uint32_t before = first.calls();
  std::thread sleeper([&] { first.sleep(before, kForever_ns); });
  while (!core.sleeps(0)) std::this_thread::yield();
  second.call_others();
  sleeper.join();
  EXPECT_FALSE(core.sleeps(0));
}

TEST(Baton, ACallBetweenTheLookAndTheSleepIsNotLost) {
  Core core;
  Baton first = core.thread(0, {1}), second = core.thread(1, {0});
  const std::uint32_t before = first.calls();
  second.call_others();
  first.sleep(before, kForever_ns);  // ends at once
  EXPECT_EQ(first.calls(), before + 1);
}

TEST(Baton, OnlyThreadsOnThatCoreAreCalled) {
  Core core;
  Baton first = core.thread(0, {1}), third = core.thread(2, {});
  first.call_others();
  EXPECT_EQ(third.calls(), 0u);
  EXPECT_EQ(core.thread(1, {}).calls(), 1u);
}

TEST(Baton, OneAloneWakesByItself) {
  Baton alone;
  alone.call_others();
  alone.sleep(alone.calls(), 1000);
  EXPECT_EQ(alone.calls(), 0u);
}

TEST(Pace, SleepsHalfOfWhatIsLeftOfTheUsualTime) {
  Pace pace;
  pace.begin(0);
  pace.progressed(400'000);
  EXPECT_EQ(pace.sleep_ns(400'000), 200'000);
  EXPECT_EQ(pace.sleep_ns(600'000), 100'000);
  EXPECT_EQ(pace.sleep_ns(800'000), 50'000);  // an eighth of what has passed
}

TEST(Pace, ALateRoundIsLookedForEverMoreRarely) {
  Pace pace;
  pace.begin(0);
  EXPECT_EQ(pace.sleep_ns(0), Pace::kLeast_ns);
  EXPECT_EQ(pace.sleep_ns(1'600'000), 200'000);
  EXPECT_EQ(pace.sleep_ns(1'000'000'000), Pace::kMost_ns);
}

TEST(Pace, FollowsTheRounds) {
  Pace pace;
  std::int64_t now = 0;
  pace.begin(now);
  for (int i = 0; i < 30; ++i) pace.progressed(now += 800'000);
  EXPECT_EQ(pace.sleep_ns(now), 400'000);
  for (int i = 0; i < 60; ++i) pace.progressed(now += 100'000);
  EXPECT_NEAR(static_cast<double>(pace.sleep_ns(now)), 50'000, 2'000);
}

TEST(Pace, TimeWithoutWorkIsNoRound) {
  Pace pace;
  pace.begin(0);
  pace.progressed(100'000);
  pace.begin(9'000'000);
  EXPECT_EQ(pace.sleep_ns(9'000'000), 50'000);
}

}  // namespace
}  // namespace weft
