// Up to which ratio of computation to communication overlap pays, with invented times.
#include "../../kernels/crossing.h"

#include <gtest/gtest.h>

namespace {

TEST(Crossing, IsTheLastRatioBeforeTheFirstThatDoesNotPay) {
  EXPECT_EQ(crossing::pays_up_to({{0.5, 0.3}, {1.0, 0.2}, {2.0, 0.1}}), 2.0);
  EXPECT_EQ(crossing::pays_up_to({{0.5, 0.3}, {1.0, 0.2}, {2.0, 0.01}, {4.0, 0.1}}), 1.0);
  EXPECT_EQ(crossing::pays_up_to({{0.5, -0.1}, {1.0, 0.2}}), 0.0);
  EXPECT_EQ(crossing::pays_up_to({}), 0.0);
}

TEST(Crossing, RatiosAtWhichNothingCouldBeWonSayNothing) {
  EXPECT_EQ(crossing::pays_up_to({{0.01, 0.0}, {0.04, 0.01}, {0.5, 0.3}, {1.0, 0.2}}), 1.0);
}

}  // namespace
