// How long the thread sleeps between two looks at the application's transfers, by a clock of the
// test's.
#include "engine/transfer_pace.h"

#include <gtest/gtest.h>

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

// So that what waits for years does not take the application's time: not one part in 100.
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

// Such as a loop that waits for its halos and starts the next ones before the thread looks again.
TEST(TransferPace, OthersInPlaceOfThoseThatEndedMakeItLookSoon) {
  TransferPace pace;
  std::uint32_t started = 0;
  for (std::int64_t now = kSecond; now < 2 * kSecond; now += 100'000)
    EXPECT_EQ(pace.sleep_ns(now, 4, started += 4), TransferPace::kLeast_ns);
}

// A window that is open to others: they may do nothing with it, epoch after epoch.
TEST(TransferPace, WhatHasNotStartedHereIsLookedAtSeldom) {
  TransferPace pace;
  int looks = 0;
  for (std::int64_t now = kSecond; now < 2 * kSecond; now += kMs) {
    pace.sleep_ns(now - 1'000, 0, 0);
    for (std::int64_t at = 0; at < kMs; at += pace.sleep_ns(now + at, 1, 0)) ++looks;
  }
  EXPECT_EQ(looks, 2'000);
}

TEST(TransferPace, StaysAwakeForAMomentAfterTheLastOne) {
  TransferPace pace;
  pace.sleep_ns(kSecond, 1, 1);
  EXPECT_EQ(pace.sleep_ns(2 * kSecond, 0, 1), TransferPace::kSlow_ns);
  EXPECT_EQ(pace.sleep_ns(2 * kSecond + TransferPace::kLinger_ns - 1, 0, 1),
            TransferPace::kSlow_ns);
  EXPECT_EQ(pace.sleep_ns(2 * kSecond + TransferPace::kLinger_ns, 0, 1), 0);
}

}  // namespace
}  // namespace weft
