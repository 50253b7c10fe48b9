// When a change of the calls' time makes the ranks compare again, and when it does not.
#include "select/result_watch.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

constexpr std::int64_t kUsual_ns = 3000;

// Returns after how many looks of this time the watch finds a change; -1 if 1000 do not suffice.
int looks_until_change(ResultWatch& watch, std::int64_t ns) {
  for (int looks = 1; looks <= 1000; ++looks) {
    watch.look(ns);
    if (watch.has_changed()) return looks;
  }
  return -1;
}

ResultWatch that_knows(std::int64_t usual_ns = kUsual_ns) {
  ResultWatch watch;
  for (std::size_t look = 0; look < ResultWatch::kLooks; ++look) watch.look(usual_ns);
  return watch;
}

TEST(ResultWatch, AThirdMoreOrAQuarterLessIsAChangeAtTheSecondLook) {
  for (const std::int64_t ns : {4001, 9000, 2249, 1000}) {
    ResultWatch watch = that_knows();
    EXPECT_EQ(looks_until_change(watch, ns), 2) << ns;
  }
}

TEST(ResultWatch, LessIsNone) {
  for (const std::int64_t ns : {3000, 3900, 4000, 2250, 2600}) {
    ResultWatch watch = that_knows();
    EXPECT_EQ(looks_until_change(watch, ns), -1) << ns;
  }
}

TEST(ResultWatch, SingleDisturbancesMeanNothing) {
  ResultWatch watch;
  for (int look = 0; look < 1000; ++look) {
    watch.look(look % 3 == 1 ? 50 * kUsual_ns : kUsual_ns);
    EXPECT_FALSE(watch.has_changed()) << look;
  }
}

TEST(ResultWatch, AfterAComparisonTheNewTimeIsTheUsualOne) {
  ResultWatch watch = that_knows();
  ASSERT_EQ(looks_until_change(watch, 3 * kUsual_ns), 2);
  watch.compared(false);
  EXPECT_EQ(looks_until_change(watch, 3 * kUsual_ns), -1);
  EXPECT_EQ(looks_until_change(watch, kUsual_ns), 2);
}

// The program itself changes the time, so that comparisons change nothing and must become rare.
TEST(ResultWatch, ComparisonsInVainBecomeRare) {
  ResultWatch watch;
  int comparisons = 0;
  constexpr int kEach = 5, kLooks = 2000;
  for (int look = 0; look < kLooks; ++look) {
    watch.look(look / kEach % 2 == 0 ? kUsual_ns : 2 * kUsual_ns);
    if (!watch.has_changed()) continue;
    ++comparisons;
    watch.compared(true);
  }
  EXPECT_GT(comparisons, 4);
  EXPECT_LT(comparisons, 6 + kLooks / static_cast<int>(ResultWatch::kMostRest));
}

TEST(ResultWatch, AComparisonThatChangesTheResultEndsTheRest) {
  ResultWatch watch = that_knows();
  for (int comparison = 0; comparison < 6; ++comparison) watch.compared(true);
  for (std::size_t look = 0; look < ResultWatch::kLooks; ++look) watch.look(kUsual_ns);
  EXPECT_GT(looks_until_change(watch, 3 * kUsual_ns), 50);
  watch.compared(false);
  for (std::size_t look = 0; look < ResultWatch::kLooks; ++look) watch.look(3 * kUsual_ns);
  EXPECT_EQ(looks_until_change(watch, kUsual_ns), 2);
}

}  // namespace
}  // namespace weft
