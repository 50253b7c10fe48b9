// Peer arithmetic: trees, folds, rings and block borders.
#include <gtest/gtest.h>

#include "patterns/blocks.h"
#include "patterns/doubling.h"
#include "patterns/ring.h"
#include "patterns/tree.h"

namespace weft {
namespace {

TEST(Tree, ParentsAndChildrenAgreeAndSubtreesAddUp) {
  for (int size = 1; size <= 33; ++size) {
    for (int node = 0; node < size; ++node) {
      int below = 1;
      for (int child : binomial_children(node, size)) {
        EXPECT_EQ(binomial_parent(child), node);
        below += binomial_subtree(child, size);
      }
      EXPECT_EQ(binomial_subtree(node, size), below);
    }
    EXPECT_EQ(binomial_subtree(0, size), size);
  }
  EXPECT_EQ(binomial_parent(0), -1);
  EXPECT_EQ(binomial_children(0, 6), (std::vector<int>{1, 2, 4}));
}

TEST(Tree, KnomialWithRadixTwoIsBinomial) {
  for (int size = 1; size <= 33; ++size)
    for (int node = 0; node < size; ++node) {
      EXPECT_EQ(knomial_parent(node, 2), binomial_parent(node));
      EXPECT_EQ(knomial_children(node, size, 2), binomial_children(node, size));
    }
}

TEST(Tree, KnomialReachesEveryNodeOnce) {
  for (int radix : {3, 4, 8})
    for (int size = 1; size <= 70; ++size) {
      int reached = 1;
      for (int node = 0; node < size; ++node)
        for (int child : knomial_children(node, size, radix)) {
          EXPECT_EQ(knomial_parent(child, radix), node);
          ++reached;
        }
      EXPECT_EQ(reached, size);
    }
}

TEST(Tree, LevelsCountFromTheLeaves) {
  for (const int radix : {2, 3, 4}) {
    for (int node = 1; node < 200; ++node) {
      const auto children = knomial_children(node, 1000, radix);
      const int level = knomial_level(node, radix);
      ASSERT_EQ(children.size(), static_cast<std::size_t>((level - 1) * (radix - 1)));
      for (const int child : children) ASSERT_LT(knomial_level(child, radix), level);
    }
  }
}

TEST(Fold, ThePreferredRankActs) {
  for (int size = 1; size <= 33; ++size)
    for (int preferred = 0; preferred < size; ++preferred) {
      const Fold fold(size, preferred);
      EXPECT_GE(fold.position(preferred), 0);
      int next = 0;
      for (int rank = 0; rank < size; ++rank) {
        if (fold.position(rank) < 0) continue;
        EXPECT_EQ(fold.position(rank), next++);
        EXPECT_EQ(fold.rank_at(fold.position(rank)), rank);
      }
      EXPECT_EQ(next, fold.power());
    }
}

TEST(Fold, PositionsCoverThePowerOfTwoOnce) {
  for (int size = 1; size <= 33; ++size) {
    const Fold fold(size);
    int next = 0;
    for (int rank = 0; rank < size; ++rank) {
      const int position = fold.position(rank);
      if (position < 0) {
        EXPECT_EQ(fold.partner(rank), rank + 1);
        continue;
      }
      EXPECT_EQ(position, next++);
      EXPECT_EQ(fold.rank_at(position), rank);
    }
    EXPECT_EQ(next, fold.power());
    EXPECT_TRUE(is_power_of_two(fold.power()));
    EXPECT_GT(2 * fold.power(), size);
  }
}

TEST(Ring, WrapsBothWays) {
  EXPECT_EQ(ring_at(4, 1, 5), 0);
  EXPECT_EQ(ring_at(0, -1, 5), 4);
  EXPECT_EQ(ring_at(1, -9, 5), 2);
}

TEST(Chain, EndsBeforeItsFirstRank) {
  EXPECT_EQ(chain_previous(3, 3, 5), -1);
  EXPECT_EQ(chain_next(3, 3, 5), 4);
  EXPECT_EQ(chain_next(4, 3, 5), 0);
  EXPECT_EQ(chain_next(2, 3, 5), -1);
  EXPECT_EQ(chain_next(0, 0, 1), -1);
}

TEST(Blocks, DifferByAtMostOneAndCoverAll) {
  const Blocks blocks{11, 4};
  EXPECT_EQ(blocks.length(0), 3);
  EXPECT_EQ(blocks.length(2), 3);
  EXPECT_EQ(blocks.length(3), 2);
  EXPECT_EQ(blocks.begin(4), 11);
  EXPECT_EQ((Blocks{2, 5}.length(3)), 0);
  EXPECT_EQ(blocks.borders(), (std::vector<std::int64_t>{0, 3, 6, 9, 11}));
}

}  // namespace
}  // namespace weft
