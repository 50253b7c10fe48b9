// Split trees: which messages become the caller's part, compared with the count of the model; that
// a thread stops before this part; and how many levels the model chooses.
#include "coll/split_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "coll/algorithm.h"
#include "select/split_model.h"
#include "select/split_rule.h"

namespace weft {
namespace {

Schedule schedule_of(Kind kind, const char* name, int rank, int size, int root, int split) {
  Shape shape;
  shape.kind = kind;
  shape.rank = rank;
  shape.size = size;
  shape.root = root;
  shape.commutative = true;
  shape.send.count = shape.recv.count = 4096;
  return build(*find_algorithm(kind, name), shape, {.split_levels = split});
}

struct Messages {
  int of_caller_at_start = 0, of_thread = 0, of_caller_at_end = 0;
};

// Counts receives only, so that each message counts once.
Messages count(Kind kind, const char* name, int size, int root, int split) {
  Messages all;
  for (int rank = 0; rank < size; ++rank) {
    const Schedule schedule = schedule_of(kind, name, rank, size, root, split);
    std::uint32_t step = 0;
    for (std::uint32_t round = 0; round < schedule.rounds(); ++round)
      for (; step < schedule.round_ends[round]; ++step) {
        if (schedule.steps[step].kind != StepKind::recv) continue;
        if (round < schedule.rounds_at_start)
          ++all.of_caller_at_start;
        else if (round >= schedule.left_from_round)
          ++all.of_caller_at_end;
        else
          ++all.of_thread;
      }
  }
  return all;
}

int messages_up_to(int levels, int size, int arity = 2) {
  int messages = 0;
  for (int level = 1; level <= std::min(levels, tree_levels(size, arity)); ++level)
    messages += level_messages(size, level, arity);
  return messages;
}

class SplitTreeTest : public testing::TestWithParam<std::tuple<int, int, int>> {
 protected:
  const int size = std::get<0>(GetParam()), root = std::get<1>(GetParam()) % size,
            split = std::get<2>(GetParam());
};

TEST_P(SplitTreeTest, OnTheWayUpTheCallerBeginsWithAsManyMessagesAsTheModelSays) {
  for (const Kind kind : {Kind::reduce, Kind::gather}) {
    const Messages all = count(kind, "binomial", size, root, split);
    EXPECT_EQ(all.of_caller_at_start, messages_up_to(split, size));
    EXPECT_EQ(all.of_caller_at_end, 0);
    EXPECT_EQ(all.of_caller_at_start + all.of_thread, size - 1);
  }
}

TEST_P(SplitTreeTest, OnTheWayDownAsManyAreLeftToTheCaller) {
  for (const Kind kind : {Kind::bcast, Kind::scatter}) {
    const Messages all = count(kind, "binomial", size, root, split);
    EXPECT_EQ(all.of_caller_at_end, messages_up_to(split, size));
    EXPECT_EQ(all.of_caller_at_start, 0);
    EXPECT_EQ(all.of_caller_at_end + all.of_thread, size - 1);
  }
}

TEST_P(SplitTreeTest, ATreeOfFourCountsByItsOwnLevels) {
  const Messages all = count(Kind::bcast, "k-nomial", size, root, split);
  EXPECT_EQ(all.of_caller_at_end, messages_up_to(split, size, 4));
  EXPECT_EQ(all.of_caller_at_end + all.of_thread, size - 1);
}

TEST_P(SplitTreeTest, AnAllreduceIsSplitBothWays) {
  const Messages all = count(Kind::allreduce, "binomial", size, 0, split);
  EXPECT_EQ(all.of_caller_at_start, messages_up_to(split, size));
  EXPECT_EQ(all.of_caller_at_end, messages_up_to(split, size));
  EXPECT_EQ(all.of_caller_at_start + all.of_thread + all.of_caller_at_end, 2 * (size - 1));
}

INSTANTIATE_TEST_SUITE_P(Sizes, SplitTreeTest,
                         testing::Combine(testing::Values(1, 2, 3, 7, 8, 13, 62),
                                          testing::Values(0, 5), testing::Values(0, 1, 2, 3, 9)));

// Both ends of a message belong to the same part, or one rank would wait for another's computation.
TEST(SplitTree, AScatterWhoseRootMustPackALongMessageLastLeavesNothingOfItsOwn) {
  const Schedule root = schedule_of(Kind::scatter, "binomial", 5, 8, 5, 1);
  EXPECT_EQ(root.left_from_round, Schedule::kNever);
}

TEST(SplitRule, TheModelChoosesForCoresThatCarryNoRank) {
  Shape shape;
  shape.kind = Kind::bcast;
  shape.size = 57;
  EXPECT_EQ(best_split(NodeCores{57, 7}, shape), 1);
  shape.size = 60;
  EXPECT_EQ(best_split(NodeCores{60, 4}, shape), 2);
  shape.size = 62;
  EXPECT_EQ(best_split(NodeCores{62, 2}, shape), 3);
  EXPECT_EQ(best_split(NodeCores{62, 2}, shape, kKnomialRadix),
            best_split(SplitModel{.cores = 64, .arity = kKnomialRadix}, 62));
  shape.size = 62 * 4;  // four nodes of 62 ranks
  EXPECT_EQ(best_split(NodeCores{62, 2}, shape), best_split(SplitModel{.cores = 64 * 4}, 62 * 4));
}

TEST(SplitRule, ThreadsBesideTheirRanksTakeTheWholeTree) {
  Shape shape;
  shape.kind = Kind::bcast;
  shape.size = 62;
  EXPECT_EQ(best_split(NodeCores{62, 0}, shape), 0);
}

TEST(SplitRule, TheStartingCallHelpsForABoundedTime) {
  const auto bound = [](Kind kind, int split) {
    return most_time_at_start_ns(schedule_of(kind, "binomial", 1, 8, 0, split));
  };
  EXPECT_EQ(bound(Kind::reduce, 0), 0);
  EXPECT_EQ(bound(Kind::reduce, 2), 2 * bound(Kind::reduce, 1));
  EXPECT_LT(bound(Kind::gather, 1), bound(Kind::gather, 2));
}

}  // namespace
}  // namespace weft
