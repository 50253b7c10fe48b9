// What a persistent collective may choose from: the same on all ranks, the rule's first, nothing
// twice, and schedules that are right.
#include "select/candidates.h"

#include <gtest/gtest.h>

#include <string>

#include "schedule/verify.h"
#include "select/selector.h"

namespace weft {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

constexpr Kind kNodeKinds[] = {Kind::barrier,
                               Kind::bcast,
                               Kind::gather,
                               Kind::scatter,
                               Kind::allgather,
                               Kind::allgatherv,
                               Kind::alltoall,
                               Kind::reduce,
                               Kind::allreduce,
                               Kind::reduce_scatter,
                               Kind::reduce_scatter_block,
                               Kind::scan,
                               Kind::exscan};

bool is_irregular(Kind kind) {
  return kind == Kind::allgatherv || kind == Kind::reduce_scatter;
}

// Doubles; ranks describe what they move by types of their own, but for reductions.
Shape shape_of(Kind kind, int rank, int size, std::int64_t elements) {
  Shape shape;
  shape.kind = kind;
  shape.rank = rank;
  shape.size = size;
  shape.root = size - 1;
  shape.on_one_node = true;
  if (kind == Kind::barrier) return shape;
  const std::int64_t width = !reduces(kind) && rank % 2 == 1 ? 16 : 8;
  const bool is_root = rank == shape.root;
  shape.recv = {elements * 8 / width, width, width, 0, width, true};
  shape.send = shape.recv;
  if (is_irregular(kind)) {
    std::int64_t offset = 0;
    for (int i = 0; i < size; ++i) {
      shape.recv_blocks.push_back({i * shape.recv.count, offset, Unit::recv});
      offset += i * shape.recv.count * width;
    }
    shape.recv.count = kind == Kind::allgatherv ? 0 : size * (size - 1) / 2 * shape.recv.count;
    shape.send.count = kind == Kind::allgatherv ? rank * shape.send.count : shape.recv.count;
  }
  if (kind == Kind::gather && !is_root) shape.recv = Layout{};
  if (kind == Kind::scatter && !is_root) shape.send = Layout{};
  return shape;
}

std::vector<BuiltCandidate> candidates_of(const Shape& shape, bool at_once = false) {
  const Shape trial = shape_on_trial(shape);
  return node_candidates(trial, default_algorithm(shape), at_once);
}

class Candidates : public testing::TestWithParam<Kind> {};

TEST_P(Candidates, AreTheSameOnAllRanksAndRight) {
  for (const int size : {2, 3, 5}) {
    for (const std::int64_t elements : {2L, 1'000L, 30'000L, 600'000L}) {
      std::vector<std::vector<BuiltCandidate>> all;
      for (int rank = 0; rank < size; ++rank)
        all.push_back(candidates_of(shape_of(GetParam(), rank, size, elements)));
      const std::string text = std::to_string(size) + " ranks, " + std::to_string(elements);
      ASSERT_FALSE(all[0].empty()) << text;
      for (std::size_t i = 0; i < all[0].size(); ++i) {
        std::vector<Schedule> schedules;
        for (const auto& of_rank : all) {
          ASSERT_EQ(of_rank.size(), all[0].size()) << text;
          EXPECT_EQ(of_rank[i].candidate, all[0][i].candidate) << text;
          EXPECT_EQ(of_rank[i].schedule.fingerprint, all[0][i].schedule.fingerprint) << text;
          schedules.push_back(of_rank[i].schedule);
        }
        const auto verified = verify(schedules);
        EXPECT_TRUE(verified) << text << ": " << verified.error().message;
      }
    }
  }
}

TEST_P(Candidates, BeginWithTheRules) {
  const Shape shape = shape_of(GetParam(), 0, 3, 1'000);
  const auto all = candidates_of(shape);
  EXPECT_EQ(all[0].candidate.algorithm, &default_algorithm(shape));
  EXPECT_EQ(all[0].candidate.tuning, Tuning{});
}

TEST_P(Candidates, AreFoundAgainByName) {
  const Shape shape = shape_of(GetParam(), 0, 3, 600'000);
  for (const BuiltCandidate& one : candidates_of(shape)) {
    const Candidate& candidate = one.candidate;
    EXPECT_EQ(find_candidate(shape, candidate.algorithm->name, candidate.tuning.part_bytes),
              candidate);
  }
  EXPECT_EQ(find_candidate(shape, "pigeon", Tuning{}.part_bytes), std::nullopt);
  EXPECT_EQ(find_candidate(shape, default_algorithm(shape).name, 12'345), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Candidates, testing::ValuesIn(kNodeKinds),
                         [](const auto& info) { return std::string(kind_name(info.param)); });

std::size_t algorithms_of_allreduce() {
  std::size_t count = 0;
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.kind == Kind::allreduce && needs_node(algorithm.needs) && !is_direct(algorithm))
      ++count;
  return count;
}

TEST(Candidates, OfAShortCallAreTheAlgorithmsOnly) {
  EXPECT_EQ(candidates_of(shape_of(Kind::allreduce, 0, 2, 1)).size(), algorithms_of_allreduce());
  EXPECT_EQ(candidates_of(shape_of(Kind::bcast, 0, 2, 1)).size(), 1u);
  EXPECT_EQ(candidates_of(shape_of(Kind::barrier, 0, 2, 0)).size(), 1u);
}

TEST(Candidates, OfALongCallDifferInTheirParts) {
  EXPECT_EQ(candidates_of(shape_of(Kind::allreduce, 0, 2, kMiB)).size(),
            3 * algorithms_of_allreduce());
  EXPECT_EQ(candidates_of(shape_of(Kind::bcast, 0, 2, kMiB)).size(), 3u);
}

TEST(Candidates, LeaveOutWhatDoesNotApply) {
  Shape shape = shape_of(Kind::allreduce, 0, 2, kMiB);
  shape.commutative = false;
  for (const BuiltCandidate& one : node_candidates(shape, default_algorithm(shape), false))
    EXPECT_STRNE(one.candidate.algorithm->name, "node-ring");
  EXPECT_EQ(find_candidate(shape, "node-ring", Tuning{}.part_bytes), std::nullopt);
  EXPECT_EQ(find_candidate(shape, "recursive-doubling", Tuning{}.part_bytes), std::nullopt);
}

TEST(Candidates, AtOnceAreThoseThatNeedNoLaterHelp) {
  const auto all = candidates_of(shape_of(Kind::allreduce, 0, 2, 4'000), true);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_STREQ(all[0].candidate.algorithm->name, "node-flat");
}

TEST(OnTrial, ShortCallsAreThemselvesAndLongOnesAMegabyte) {
  const Shape brief = shape_of(Kind::allreduce, 0, 2, 1'000);
  EXPECT_EQ(shape_on_trial(brief), brief);
  for (const Kind kind : kNodeKinds) {
    if (kind == Kind::barrier) continue;
    for (const int rank : {0, 1, 2}) {
      const Shape trial = shape_on_trial(shape_of(kind, rank, 3, 3 * kMiB));
      const std::int64_t bytes = *agreed_bytes(trial);
      EXPECT_LE(bytes, kMiB) << kind_name(kind);
      EXPECT_GE(bytes, kMiB - 64) << kind_name(kind);
    }
  }
}

}  // namespace
}  // namespace weft
