// Which variant the measured times prefer, and how much slower the library's own may be and still
// be taken.
#include "select/tried_variants.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr int kNative = 1;

// Returns the preferred one of three variants: the rule's, native, another. In each round all are
// slower than in the round before.
int preferred(std::vector<std::int64_t> ns, int rounds, int drift_percent = 10) {
  TriedVariants tried(ns.size(), kNative, false);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::int64_t> now = ns;
    for (std::int64_t& time : now) time += time * round * drift_percent / 100;
    tried.add_round(now);
  }
  return tried.preferred();
}

TEST(TriedVariants, TheSurerTheBestIsTheLessMayTheLibrarysBeSlower) {
  EXPECT_EQ(preferred({2000, 1045, 1000}, 2), kNative);
  EXPECT_EQ(preferred({2000, 1055, 1000}, 2), 2);
  EXPECT_EQ(preferred({2000, 1025, 1000}, 3), kNative);
  EXPECT_EQ(preferred({2000, 1035, 1000}, 3), 2);
  EXPECT_EQ(preferred({2000, 1015, 1000}, 6), kNative);
  EXPECT_EQ(preferred({2000, 1025, 1000}, 6), 2);
}

TEST(TriedVariants, WhatIsFasterInItsSlowestRoundIsTakenForLess) {
  EXPECT_EQ(preferred({2000, 1015, 1000}, 3, 0), 2);
  EXPECT_EQ(preferred({2000, 1015, 1000}, 3), kNative);
  EXPECT_EQ(preferred({2000, 1015, 1000}, 2, 0), kNative);
  EXPECT_EQ(preferred({2000, 1005, 1000}, 3, 0), kNative);
}

TEST(TriedVariants, TheRulesStaysWithinOnePerCent) {
  EXPECT_EQ(preferred({1005, 2000, 1000}, 6), 0);
  EXPECT_EQ(preferred({1015, 2000, 1000}, 6), 2);
}

// The best variant wins one of two rounds, in which the library's takes a bit longer, or twice.
TEST(TriedVariants, DoubtsCountOnlyWhereTheDifferenceIsLessThanHalf) {
  for (const std::int64_t librarys : {1300, 2000}) {
    TriedVariants tried(3, kNative, false);
    tried.add_round({9000, librarys, 1000});
    tried.add_round({9000, librarys, 5000});
    EXPECT_EQ(tried.preferred(), librarys == 1300 ? kNative : 2);
  }
}

TEST(TriedVariants, OnlyWhatIsClearlySlowerIsDroppedAsSlow) {
  TriedVariants tried(4, kNative, false);
  tried.leave_out(3);
  tried.add_round({1000, 1200, 2500, 0});
  tried.drop_the_slow(1);
  EXPECT_TRUE(tried.is_slow(2));
  EXPECT_TRUE(tried.is_out(3));
  for (const int other : {0, kNative, 3}) EXPECT_FALSE(tried.is_slow(other));
  tried.drop_the_distant();
  EXPECT_TRUE(tried.is_out(kNative));
  EXPECT_FALSE(tried.is_slow(kNative));
}

TEST(TriedVariants, AVariantThatWinsMostRoundsDoesSoSeldomByChance) {
  EXPECT_DOUBLE_EQ(chance_of(0, 0), 1);
  EXPECT_DOUBLE_EQ(chance_of(0, 7), 1);
  EXPECT_DOUBLE_EQ(chance_of(5, 5), 1.0 / 32);
  EXPECT_DOUBLE_EQ(chance_of(8, 9), 10.0 / 512);
}

// A variant in use is kept unless another one is surely faster, as the library's own is.
TEST(TriedVariants, WhatIsInUseIsBeatenByWhatIsSurelyFaster) {
  const auto is_beaten = [](std::int64_t in_use, std::int64_t challenger, int rounds) {
    TriedVariants tried(3, kNative, false);
    tried.leave_out(0);
    for (int round = 0; round < rounds; ++round)
      tried.add_round({0, challenger + challenger * round / 10, in_use + in_use * round / 10});
    return tried.is_beaten(2);
  };
  EXPECT_FALSE(is_beaten(1000, 1500, 5));
  EXPECT_FALSE(is_beaten(1000, 1000, 5));
  EXPECT_FALSE(is_beaten(1025, 1000, 5));
  EXPECT_TRUE(is_beaten(1035, 1000, 5));
  EXPECT_FALSE(is_beaten(1045, 1000, 1));
}

TEST(TriedVariants, WhatIsOutIsNotTheBest) {
  TriedVariants tried(3, kNative, false);
  tried.add_round({1000, 2000, 1500});
  tried.leave_out(0);
  EXPECT_EQ(tried.best(), 2);
  EXPECT_EQ(tried.left(), 2);
}

}  // namespace
}  // namespace weft
