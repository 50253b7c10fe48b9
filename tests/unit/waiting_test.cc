// What a progress thread does while nothing progresses, by a clock that the test controls.
#include "engine/waiting.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Kind = Rest::Kind;

TEST(Waiting, AFixedBackOffTakesNoTime) {
  Waiting yields({BackOff::Kind::yield}), spins({BackOff::Kind::spin});
  Waiting sleeps({BackOff::Kind::sleep, 20});
  for (const Waiting& one : {yields, spins, sleeps}) EXPECT_FALSE(one.keeps_time());
  EXPECT_EQ(yields.among_operations(0).kind, Kind::yield);
  EXPECT_EQ(spins.among_operations(0).kind, Kind::none);
  EXPECT_EQ(sleeps.among_operations(0).kind, Kind::sleep);
  EXPECT_EQ(sleeps.among_operations(0).ns, 20'000);
}

TEST(Waiting, QuietIsAwakeOnlyWhereRoundsAreShort) {
  Waiting waiting({BackOff::Kind::quiet});
  std::int64_t now = 0;
  waiting.begin(now);
  for (int round = 0; round < 50; ++round) waiting.progressed(now += 10'000);
  EXPECT_EQ(waiting.among_operations(now + 1'000).kind, Kind::yield);
  for (int round = 0; round < 50; ++round) waiting.progressed(now += 2'000'000);
  const Rest rest = waiting.among_operations(now + 1'000'000);
  EXPECT_EQ(rest.kind, Kind::doze);
  EXPECT_EQ(rest.ns, 250'000);
}

TEST(Waiting, QuietDozesForAWhileWhereAYieldHasGivenTheCoreAway) {
  Waiting waiting({BackOff::Kind::quiet});
  waiting.begin(0);
  waiting.yielded(2'000);  // no other thread wanted the core
  EXPECT_EQ(waiting.among_operations(1'000).kind, Kind::yield);
  waiting.yielded(4'000'000);
  int dozes = 0;
  for (Rest rest; (rest = waiting.among_operations(1'000)).kind == Kind::doze; ++dozes)
    EXPECT_EQ(rest.ns, QuietPace::kLeast_ns);
  EXPECT_GT(dozes, 100);
  EXPECT_LT(dozes, 1'000);
  waiting.yielded(4'000'000);
  EXPECT_EQ(waiting.among_operations(1'000, true).kind, Kind::yield);
}

// Nobody sees when hidden rounds progress, so none of them counts as late.
TEST(Waiting, QuietLooksAgainAtOnceAtWhatHidesItsRounds) {
  Waiting waiting({BackOff::Kind::quiet});
  waiting.begin(0);
  EXPECT_EQ(waiting.among_operations(1'000'000).kind, Kind::doze);
  EXPECT_EQ(waiting.among_operations(1'000'000, true).kind, Kind::yield);
}

TEST(Waiting, QuietIsNotLateForTransfers) {
  Waiting waiting({BackOff::Kind::quiet});
  waiting.begin(0);
  constexpr std::int64_t kNow = 10'000'000;
  EXPECT_EQ(waiting.among_operations(kNow, false, true).ns, QuietPace::kLeast_ns);
  EXPECT_TRUE(waiting.is_look_due(kNow, 1, 1));
  EXPECT_EQ(waiting.among_operations(kNow, false, true).ns, TransferPace::kLeast_ns);
  EXPECT_EQ(waiting.among_operations(kNow, false, false).ns, QuietPace::kMost_ns);
}

TEST(Waiting, WithNothingToDoItSleepsUntilItIsCalled) {
  Waiting waiting({BackOff::Kind::yield});
  EXPECT_EQ(waiting.without_operations(0, 0, 0).kind, Kind::idle);
  const Rest rest = waiting.without_operations(1'000'000, 1, 1);
  EXPECT_EQ(rest.kind, Kind::doze);
  EXPECT_EQ(rest.ns, TransferPace::kLeast_ns);
}

TEST(Waiting, TransfersBesideOperationsAreLookedAtByTheirOwnPace) {
  Waiting waiting({BackOff::Kind::yield});
  int looks = 0;
  for (std::int64_t now = 0; now < 10'000'000; now += 1'000)
    looks += waiting.is_look_due(now, 1, 1);
  EXPECT_GT(looks, 20);
  EXPECT_LT(looks, 200);
}

// The dozing thread is not woken for each transfer, unless it would be late.
TEST(Waiting, ALongDozeForAWindowEndsWhereTransfersCome) {
  Waiting waiting({BackOff::Kind::yield});
  EXPECT_FALSE(waiting.without_operations(0, 1, 0, 1, 1).until_more);
  EXPECT_TRUE(waiting.without_operations(1'000'000'000, 1, 0, 1, 1).until_more);
  EXPECT_FALSE(waiting.without_operations(2'000'000'000, 2, 0, 1, 1).until_more);
}

TEST(Waiting, AWindowInWhichSomethingMovesIsLookedAtSooner) {
  Waiting waiting({BackOff::Kind::yield});
  waiting.without_operations(0, 1, 0, 1, 1);
  EXPECT_TRUE(waiting.look_continues(1, 0, 5'000));
  EXPECT_FALSE(waiting.look_continues(2, 0, 300));
  EXPECT_GT(waiting.without_operations(1'000'000'000, 1, 0, 1, 1).ns, TransferPace::kMost_ns);
  EXPECT_TRUE(waiting.look_continues(1, 0, 5'000));
  EXPECT_TRUE(waiting.look_continues(2, 0, 1'500));
  EXPECT_EQ(waiting.without_operations(1'100'000'000, 1, 0, 1, 1).ns, TransferPace::kMost_ns);
}

// For example, other ranks lock a window while this rank has messages of its own.
TEST(Waiting, TransfersThatOthersWaitForHaveAPaceOfTheirOwn) {
  Waiting waiting({BackOff::Kind::yield});
  EXPECT_EQ(waiting.without_operations(1'000'000'000, 1, 0, 1, 0, 1).ns, AnswerPace::kMost_ns);
  EXPECT_EQ(waiting.without_operations(2'000'000'000, 2, 1, 1, 0, 1).ns, TransferPace::kLeast_ns);
  EXPECT_EQ(waiting.without_operations(3'000'000'000, 2, 1, 1, 0, 1).ns, TransferPace::kMost_ns);
  EXPECT_EQ(waiting.without_operations(4'000'000'000, 1, 1, 1, 0, 1).kind, Kind::doze);
  EXPECT_TRUE(waiting.look_continues(1, 5'000'000'000, 5'000, 1));
  EXPECT_TRUE(waiting.look_continues(2, 5'000'000'000, 300, 1));
  EXPECT_TRUE(waiting.look_continues(3, 5'000'000'000, 3'000, 1));
  EXPECT_EQ(waiting.without_operations(5'000'001'000, 1, 1, 1, 0, 1).ns, AnswerPace::kLeast_ns);
}

}  // namespace
}  // namespace weft
