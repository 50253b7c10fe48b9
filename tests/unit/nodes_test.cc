// Which ranks are on which node: numbers of nodes, node ranks, and what algorithms ask for.
#include "schedule/nodes.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Nodes, CountInTheOrderOfTheirLowestRanks) {
  const Nodes nodes({7, 3, 7, 3, 9});
  EXPECT_EQ(nodes.count(), 3);
  EXPECT_EQ(nodes.of(0), 0);
  EXPECT_EQ(nodes.of(3), 1);
  EXPECT_EQ(nodes.of(4), 2);
  EXPECT_EQ(nodes.local_rank(2), 1);
  EXPECT_EQ(nodes.ranks(1).listed(), (std::vector{1, 3}));
  EXPECT_EQ(nodes.ranks_on(2), 1);
}

TEST(Nodes, KnowWhetherTheyShareAreAlikeAndInOrder) {
  EXPECT_FALSE(Nodes({0, 1, 2}).some_share());
  EXPECT_TRUE(Nodes({0, 0, 1}).some_share());
  EXPECT_FALSE(Nodes({0, 0, 1}).all_alike());
  EXPECT_TRUE(Nodes({0, 1, 0, 1}).all_alike());
  EXPECT_TRUE(Nodes({5, 5, 2, 2}).are_in_order());
  EXPECT_FALSE(Nodes({0, 1, 0, 1}).are_in_order());
}

TEST(Nodes, HaveLocalRanksByDomain) {
  const Nodes nodes({0, 0, 0, 0, 1, 1}, {1, 0, 1, 0, 0, 0});
  EXPECT_EQ(nodes.ranks(0).listed(), (std::vector{1, 3, 0, 2}));
  EXPECT_EQ(nodes.local_rank(2), 3);
  EXPECT_EQ(nodes.ranks(1).listed(), (std::vector{4, 5}));
  EXPECT_FALSE(nodes.are_in_order());
  EXPECT_TRUE(Nodes({0, 0, 0, 1}, {0, 0, 1, 0}).are_in_order());
}

TEST(Nodes, AreEqualWhereTheSameRanksAreTogether) {
  EXPECT_EQ(Nodes({4, 4, 1}), Nodes({0, 0, 3}));
  EXPECT_FALSE(Nodes({0, 0, 1}) == Nodes({0, 1, 1}));
  EXPECT_EQ(Nodes::one(3), Nodes({7, 7, 7}));
}

}  // namespace
}  // namespace weft
