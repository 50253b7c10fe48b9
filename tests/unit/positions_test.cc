// Positions of a cycle of calls: the variant of each, when two become one, and when one has
// changed.
#include "select/positions.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Positions, NewOnesGoByTheVariantOfTheNearestPeriod) {
  Positions positions(4, 1, false);
  positions.renew({100, 400});
  positions[0].variant = 2;
  positions[1].variant = 3;
  positions.renew({380, 120, 90});
  EXPECT_EQ(positions.cycle(), 3u);
  EXPECT_EQ(positions.variant_of(0), 3);
  EXPECT_EQ(positions.variant_of(1), 2);
  EXPECT_EQ(positions.variant_of(5), 2);
}

TEST(Positions, ThoseThatAreAlikeBecomeOneOfTheMeanPeriod) {
  Positions positions(2, 1, false);
  positions.renew({60, 40, 40, 40});
  positions.merge_alike();
  ASSERT_EQ(positions.cycle(), 1u);
  EXPECT_EQ(positions[0].period_ns, 45);
  EXPECT_FALSE(positions.has_moved(0, 45));
}

TEST(Positions, ThoseThatDifferByVariantOrByHalfStay) {
  Positions positions(2, 1, false);
  positions.renew({40, 40});
  positions[1].variant = 1;
  positions.merge_alike();
  EXPECT_EQ(positions.cycle(), 2u);
  positions[1].variant = 0;
  positions[1].period_ns = 61;
  positions.merge_alike();
  EXPECT_EQ(positions.cycle(), 2u);
}

// A change is at least three tenths of the position's time plus a tenth of the mean of all.
TEST(Positions, AShortOneBesideLongOnesHasNotMovedForTrifles) {
  Positions positions(2, 1, false);
  positions.renew({1'000, 100'000});
  EXPECT_FALSE(positions.has_moved(0, 5'000));
  EXPECT_TRUE(positions.has_moved(0, 7'000));
  EXPECT_FALSE(positions.has_moved(1, 125'000));
  EXPECT_TRUE(positions.has_moved(1, 135'000));
}

TEST(Positions, WhereNothingWasTriedThePeriodIsWhatIsKnown) {
  Positions positions(3, 1, false);
  positions.renew({500});
  positions[0].variant = 2;
  const Found found = positions.found().front();
  EXPECT_EQ(found.variant, 2);
  EXPECT_EQ(found.median_ns, (std::vector<std::int64_t>{0, 0, 500}));
  EXPECT_EQ(found.pairs, 0);
}

}  // namespace
}  // namespace weft
