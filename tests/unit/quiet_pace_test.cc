// When a thread that should look seldom looks, by a clock that the test controls.
#include "engine/quiet_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Returns the times of all looks until one sees the end of the round, which lasts `takes_ns`.
std::vector<std::int64_t> looks_at(QuietPace& pace, std::int64_t begin_ns, std::int64_t takes_ns) {
  std::vector<std::int64_t> looks = {begin_ns};
  while (looks.back() < begin_ns + takes_ns)
    looks.push_back(looks.back() + std::max<std::int64_t>(pace.sleep_ns(looks.back()), 500));
  pace.progressed(looks.back());
  return looks;
}

// Returns a pace that has learnt from rounds of this length.
QuietPace that_knows(std::int64_t takes_ns, int rounds = 40) {
  QuietPace pace;
  pace.begin(0);
  std::int64_t now = 0;
  for (int i = 0; i < rounds; ++i) now = looks_at(pace, now, takes_ns).back();
  pace.begin(0);
  return pace;
}

TEST(QuietPace, TheFirstRoundIsSeenToEndAtMostAnEighthOfItsTimeLate) {
  for (const std::int64_t takes_ns : {1 * kMs, 3 * kMs, 80 * kMs}) {
    QuietPace pace;
    pace.begin(0);
    EXPECT_LE(looks_at(pace, 0, takes_ns).back(), takes_ns + takes_ns / 8);
  }
}

// A look every half millisecond before the end is what the parts of a long message need.
TEST(QuietPace, OnceLearnedItLooksSeldomAndSeesTheEndSoon) {
  QuietPace pace = that_knows(40 * kMs);
  const auto looks = looks_at(pace, 0, 40 * kMs);
  EXPECT_LT(looks.size(), 130U);
  EXPECT_LT(looks.back(), 40 * kMs + kMs / 2);
  for (std::size_t i = 1; i < looks.size(); ++i)
    EXPECT_LE(looks[i] - looks[i - 1], QuietPace::kMost_ns);
}

TEST(QuietPace, AShortRoundIsFoundSoon) {
  QuietPace pace = that_knows(200'000);
  EXPECT_LT(looks_at(pace, 0, 200'000).back(), 200'000 + 60'000);
}

TEST(QuietPace, WhatIsShortIsWaitedForAwake) {
  QuietPace pace = that_knows(4'000);
  EXPECT_EQ(pace.sleep_ns(0), 0);
  EXPECT_EQ(pace.sleep_ns(10'000), 0);
  EXPECT_GT(pace.sleep_ns(QuietPace::kShort_ns), 0);
}

// The first round of each collective waits for ranks that come late; its other rounds are short.
TEST(QuietPace, ShortRoundsAmongLongOnesAreWaitedForAwake) {
  QuietPace pace;
  std::int64_t now = 0;
  pace.begin(now);
  for (int round = 0; round < 80; ++round)
    now = looks_at(pace, now, round % 8 == 0 ? 3 * kMs : 5'000).back();
  for (const std::int64_t takes_ns : {5'000, 40'000})
    EXPECT_LE(looks_at(pace, now, takes_ns).back() - now, takes_ns + 500);
}

// A message may need several looks, one after the other, before it travels.
TEST(QuietPace, ALongRoundsBeginIsLookedAtOften) {
  QuietPace pace = that_knows(2 * kMs);
  const auto looks = looks_at(pace, 0, 2 * kMs);
  for (std::size_t i = 1; i < looks.size(); ++i)
    EXPECT_LE(looks[i] - looks[i - 1], std::max(QuietPace::kLeast_ns, looks[i - 1] / 4));
}

TEST(QuietPace, OneThatIsLateIsLookedForMoreAndMoreSeldom) {
  QuietPace pace = that_knows(kMs);
  EXPECT_LE(pace.sleep_ns(2 * kMs), 150'000);
  EXPECT_EQ(pace.sleep_ns(100 * kMs), QuietPace::kMost_ns);
}

TEST(QuietPace, ItLearnsAgainWhereRoundsTakeAnotherTime) {
  QuietPace pace = that_knows(40 * kMs);
  std::int64_t now = 0;
  for (int i = 0; i < 60; ++i) now = looks_at(pace, now, kMs).back();
  EXPECT_LT(looks_at(pace, now, kMs).back() - now, kMs + kMs / 8);
}

}  // namespace
}  // namespace weft
