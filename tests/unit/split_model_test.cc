// Compares the split tree's model with the numbers of the paper and of its corrections.
#include "select/split_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace weft {
namespace {

SplitModel cores(int number) {
  SplitModel model;
  model.cores = number;
  return model;
}

double rounded(double value) {
  return std::round(value * 100) / 100;
}

// Returns the numbers of ranks at which the best S changes.
std::vector<int> switches(const SplitModel& model) {
  std::vector<int> found;
  for (int ranks = 3; ranks < model.cores; ++ranks)
    if (best_split(model, ranks) != best_split(model, ranks - 1)) found.push_back(ranks);
  return found;
}

TEST(SplitModel, CountsTheMessagesOfATree) {
  for (int ranks = 2; ranks <= 4096; ++ranks) {
    int all = 0;
    for (int level = 1; level <= tree_levels(ranks); ++level) {
      const double power = std::pow(2, level);
      EXPECT_EQ(level_messages(ranks, level), std::ceil(ranks / power - 0.5)) << ranks;
      all += level_messages(ranks, level);
    }
    ASSERT_EQ(all, ranks - 1);
    ASSERT_EQ(tree_levels(ranks), std::ceil(std::log2(ranks)));
    EXPECT_EQ(blocking_time(cores(ranks), ranks), tree_levels(ranks));
  }
}

TEST(SplitModel, On64CoresAsInTheDesign) {
  const SplitModel model = cores(64);
  EXPECT_EQ(best_ranks(model), 51);
  EXPECT_EQ(best_split(model, 51), 0);
  EXPECT_EQ(rounded(split_time(model, 51, 0).total), 7.53);
  EXPECT_EQ(best_split(model, 57), 1);
  EXPECT_EQ(rounded(split_time(model, 57, 1).total), 7.74);
  EXPECT_EQ(best_split(model, 60), 2);
  EXPECT_EQ(rounded(split_time(model, 60, 2).total), 8.4);
  EXPECT_EQ(best_split(model, 62), 3);
  EXPECT_EQ(rounded(split_time(model, 62, 3).total), 9.19);
  EXPECT_EQ(switches(model), (std::vector<int>{52, 58, 62}));
  EXPECT_EQ(split_time(model, 64, 0).total, 12);
}

TEST(SplitModel, On48Cores) {
  const SplitModel model = cores(48);
  EXPECT_EQ(best_ranks(model), 38);
  EXPECT_EQ(rounded(split_time(model, 38, best_split(model, 38)).total), 7.58);
}

TEST(SplitModel, AsDataflowTheOptimumMoves) {
  SplitModel model = cores(64);
  model.dataflow = true;
  EXPECT_EQ(best_split(model, 61), 2);
  EXPECT_EQ(switches(model), (std::vector<int>{55, 59, 62}));
}

// The example of the paper's figures 8 and 9: 16 ranks, 2 communication cores.
TEST(SplitModel, FoldedOnTwoCores) {
  const SplitModel model = cores(18);
  EXPECT_EQ(split_time(model, 16, 0).communication, 8);
  EXPECT_EQ(split_time(model, 16, 2).communication, 2);
  EXPECT_EQ(split_time(model, 16, 2).application, 2);
}

// Each level takes twice as long as the one below: W = 2^H - 1.
TEST(SplitModel, GatherAndScatterGrow) {
  SplitModel model = cores(64);
  model.grows = true;
  EXPECT_EQ(blocking_time(model, 64), 63);
  EXPECT_EQ(split_time(model, 62, 6).application, 63);
  // Levels of 31, 16, 8, 4, 2 and 1 messages on two cores.
  EXPECT_EQ(split_time(model, 62, 0).communication, 16 + 8 * 2 + 4 * 4 + 2 * 8 + 16 + 32);
}

TEST(SplitModel, TreesOfOtherArity) {
  for (int arity = 2; arity <= 8; ++arity) {
    for (int ranks = 2; ranks <= 300; ++ranks) {
      int all = 0;
      for (int level = 1; level <= tree_levels(ranks, arity); ++level)
        all += level_messages(ranks, level, arity);
      ASSERT_EQ(all, ranks - 1) << arity;
    }
  }
  SplitModel model = cores(20);
  model.arity = 4;
  EXPECT_EQ(blocking_time(model, 16), 6);
  EXPECT_EQ(split_time(model, 16, 0).communication, 3 + 3);
  EXPECT_EQ(split_time(model, 19, 0).communication, 14 + 3 + 1);
}

TEST(SplitModel, ALevelBetweenNodesCostsMore) {
  SplitModel model = cores(20);
  model.level_cost = {1, 1, 1, 5};
  EXPECT_EQ(blocking_time(model, 16), 8);
  EXPECT_EQ(blocking_time(model, 17), 13);
  EXPECT_EQ(split_time(model, 16, 0).communication, 2 + 1 + 1 + 5);
}

// One core sends all messages one after the other. With as many cores as messages, the time is that
// of the tree.
TEST(SplitModel, DataflowBetweenItsBounds) {
  for (const int arity : {2, 3, 4}) {
    for (int ranks = 2; ranks <= 100; ++ranks) {
      SplitModel model = cores(ranks + 1);
      model.arity = arity;
      model.dataflow = true;
      ASSERT_EQ(split_time(model, ranks, 0).communication, ranks - 1);
      model.cores = 2 * ranks;
      const double flow = split_time(model, ranks, 0).communication;
      ASSERT_LE(flow, blocking_time(model, ranks));
      model.dataflow = false;
      ASSERT_LE(flow, split_time(model, ranks, 0).communication);
    }
  }
}

}  // namespace
}  // namespace weft
