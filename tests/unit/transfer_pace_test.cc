// How long the thread sleeps between two looks at the application's transfers, by a clock that the
// test controls.
#include "engine/transfer_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kMs = 1'000'000;

TEST(TransferPace, NothingToStayAwakeForAtFirst) {
  TransferPace pace;
  EXPECT_EQ(pace.sleep_ns(0, 0, 0), 0);
  EXPECT_EQ(pace.sleep_ns(5 * kSecond, 0, 0), 0);
}

TEST(TransferPace, LooksComeAfterAnEighthOfTheTimeAndSeldomInTheEnd) {
  TransferPace pace;
  EXPECT_EQ(pace.sleep_ns(kSecond, 1, 1), TransferPace::kLeast_ns);
  EXPECT_EQ(pace.sleep_ns(kSecond + 80'000, 1, 1), TransferPace::kLeast_ns);
  EXPECT_EQ(pace.sleep_ns(kSecond + 1 * kMs, 1, 1), kMs / 8);
  EXPECT_EQ(pace.sleep_ns(kSecond + 10 * kMs, 1, 1), TransferPace::kSlow_ns);
  EXPECT_EQ(pace.sleep_ns(kSecond + 64 * kMs, 1, 1), kMs);
  EXPECT_EQ(pace.sleep_ns(kSecond + 60 * kSecond, 1, 1), TransferPace::kMost_ns);
}

// A transfer that lasts for years must cost less than one part in 100 of the application's time.
TEST(TransferPace, LooksAtOneThatNeverEndsAreFew) {
  TransferPace pace;
  int looks = 0;
  for (std::int64_t now = 0; now < 10 * kSecond; now += pace.sleep_ns(now, 1, 1)) ++looks;
  EXPECT_LT(looks, 5'200);
}

TEST(TransferPace, AnotherOneMakesItLookSoon) {
  TransferPace pace;
  pace.sleep_ns(0, 1, 1);
  EXPECT_EQ(pace.sleep_ns(kSecond, 1, 1), TransferPace::kMost_ns);
  EXPECT_EQ(pace.sleep_ns(kSecond, 2, 2), TransferPace::kLeast_ns);
  EXPECT_EQ(pace.sleep_ns(2 * kSecond, 1, 2), TransferPace::kMost_ns);
}

// For example, a loop waits for its halos and starts the next ones before the thread looks again.
TEST(TransferPace, OthersInPlaceOfThoseThatEndedMakeItLookSoon) {
  TransferPace pace;
  std::uint32_t started = 0;
  for (std::int64_t now = kSecond; now < 2 * kSecond; now += 100'000)
    EXPECT_EQ(pace.sleep_ns(now, 4, started += 4), TransferPace::kLeast_ns);
}

// A window is open to other ranks, which may do nothing with it, epoch after epoch.
TEST(TransferPace, WhatHasNotStartedHereIsLookedAtSeldom) {
  TransferPace pace;
  int looks = 0;
  for (std::int64_t now = kSecond; now < 2 * kSecond; now += kMs) {
    pace.sleep_ns(now - 1'000, 0, 0);
    for (std::int64_t at = 0; at < kMs; at += pace.sleep_ns(now + at, 1, 0)) ++looks;
  }
  EXPECT_EQ(looks, 2'000);
}

// Between two epochs of MPI_Win_fence there is less time than between two looks.
TEST(TransferPace, EachTimeThatAWindowIsOpenedCountsAnew) {
  TransferPace pace;
  std::uint32_t opened = 0;
  for (std::int64_t now = kSecond; now < 2 * kSecond; now += 10 * kMs)
    EXPECT_EQ(pace.sleep_ns(now, 1, 0, ++opened), TransferPace::kSlow_ns);
  EXPECT_EQ(pace.sleep_ns(10 * kSecond, 1, 0, opened), TransferPace::kMost_ns);
}

TEST(TransferPace, AWindowThatIsOpenedMakesNoLookLater) {
  TransferPace pace;
  pace.sleep_ns(kSecond, 1, 1, 0);
  EXPECT_EQ(pace.sleep_ns(kSecond + kMs, 2, 1, 1), kMs / 8);
}

// Other ranks may never use a window that stays open, so the looks become rarer.
TEST(TransferPace, AWindowLeftOpenIsLookedAtMoreAndMoreSeldom) {
  TransferPace pace;
  int looks = 0;
  for (std::int64_t at = 0; at < 60 * kSecond; at += pace.sleep_ns(kSecond + at, 1, 0, 1, 1))
    ++looks;
  EXPECT_LT(looks, 1'500);
  EXPECT_EQ(pace.sleep_ns(61 * kSecond, 1, 0, 1, 1), TransferPace::kMostForOthers_ns);
  EXPECT_EQ(pace.sleep_ns(62 * kSecond, 2, 0, 1, 1), TransferPace::kMost_ns);
  EXPECT_EQ(pace.sleep_ns(63 * kSecond, 1, 0, 2, 1), TransferPace::kSlow_ns);
}

TEST(TransferPace, WhatMovesInAWindowIsLookedAtAsOftenAsOtherTransfers) {
  TransferPace pace;
  pace.sleep_ns(kSecond, 1, 0, 1, 1);
  EXPECT_EQ(pace.sleep_ns(60 * kSecond, 1, 0, 1, 1), TransferPace::kMostForOthers_ns);
  pace.moved();
  EXPECT_EQ(pace.sleep_ns(61 * kSecond, 1, 0, 1, 1), TransferPace::kMost_ns);
  EXPECT_EQ(pace.sleep_ns(61 * kSecond + 64 * kMs, 1, 0, 1, 1), 3 * kMs);
}

TEST(TransferPace, StaysAwakeForAMomentAfterTheLastOne) {
  TransferPace pace;
  pace.sleep_ns(kSecond, 1, 1);
  EXPECT_EQ(pace.sleep_ns(2 * kSecond, 0, 1), TransferPace::kSlow_ns);
  EXPECT_EQ(pace.sleep_ns(2 * kSecond + TransferPace::kLinger_ns - 1, 0, 1),
            TransferPace::kSlow_ns);
  EXPECT_EQ(pace.sleep_ns(2 * kSecond + TransferPace::kLinger_ns, 0, 1), 0);
}

constexpr std::int64_t kColdCall_ns = 5'000, kIdleCall_ns = 300, kMovingCall_ns = 1'500;

// Looks once and returns how many of the calls are left in which the library must move something.
int look(TransferLook& look, int calls_to_move, std::int64_t idle_ns = kIdleCall_ns) {
  int calls = 0;
  bool continues = true;
  while (continues) {
    const std::int64_t usual_ns = calls < calls_to_move ? kMovingCall_ns : idle_ns;
    continues = look.continues(calls + 1, usual_ns + (calls == 0 ? kColdCall_ns : 0));
    ++calls;
  }
  EXPECT_LE(calls, TransferLook::kMostCalls);
  return std::max(calls_to_move - calls, 0);
}

int looks_for(TransferLook& pace, int calls_to_move) {
  int looks = 0;
  for (; calls_to_move > 0; ++looks) calls_to_move = look(pace, calls_to_move);
  return looks;
}

// Each call moves 8 KiB.
TEST(TransferLook, TwoMebibytesTakeAFewLooks) {
  TransferLook pace;
  look(pace, 0);
  EXPECT_EQ(looks_for(pace, 256), 256 / TransferLook::kMostCalls);
}

TEST(TransferLook, ALookAtWhatDoesNotMoveAsksTwice) {
  TransferLook pace;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(pace.continues(1, kColdCall_ns));
    EXPECT_FALSE(pace.continues(2, kIdleCall_ns));
  }
}

// Calls become slower when the library has more connections to look at.
TEST(TransferLook, CallsThatHaveBecomeSlowerDoNotCountAsMovingForLong) {
  TransferLook pace;
  look(pace, 0);
  constexpr std::int64_t kSlower_ns = 3 * kIdleCall_ns;
  for (int i = 0; i < 40; ++i) look(pace, 0, kSlower_ns);
  EXPECT_TRUE(pace.continues(1, kColdCall_ns));
  EXPECT_FALSE(pace.continues(2, kSlower_ns));
}

}  // namespace
}  // namespace weft
