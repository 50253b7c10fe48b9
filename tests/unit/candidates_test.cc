// The algorithms from which a persistent collective chooses: they are the same on all ranks, begin
// with that of the static rule, differ from each other, and have correct schedules.
#include "select/candidates.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>

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

// Returns the shape of a call with doubles. Except in reductions, each rank describes them by a
// datatype of its own.
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

std::shared_ptr<const Domains> two_domains(int size) {
  std::vector<int> domains;
  for (int rank = 0; rank < size; ++rank) domains.push_back(rank < (size + 1) / 2 ? 0 : 1);
  return std::make_shared<const Domains>(domains);
}

struct BuiltCandidate {
  Candidate candidate;
  Schedule schedule;
};

// Builds all candidates and returns them.
std::vector<BuiltCandidate> all_for(const Shape& shape, const Candidate& first, bool at_once,
                                    std::int32_t iterations) {
  Candidates candidates(shape, first, at_once, iterations);
  std::vector<BuiltCandidate> all;
  for (std::size_t i = 0; i < candidates.count(); ++i)
    if (const Schedule* schedule = candidates.schedule(i))
      all.push_back({candidates[i], *schedule});
  return all;
}

std::vector<BuiltCandidate> candidates_of(const Shape& shape, bool at_once = false) {
  const Shape trial = shape_on_trial(shape);
  return all_for(trial, {&default_algorithm(shape), {}}, at_once, INT32_MAX);
}

class CandidatesOf : public testing::TestWithParam<Kind> {};

TEST_P(CandidatesOf, AreTheSameOnAllRanksAndRight) {
  for (const int size : {2, 3, 5, -5}) {  // a negative number of ranks means two NUMA domains
    for (const std::int64_t elements : {2L, 1'000L, 30'000L, 600'000L}) {
      std::vector<std::vector<BuiltCandidate>> all;
      for (int rank = 0; rank < std::abs(size); ++rank) {
        Shape shape = shape_of(GetParam(), rank, std::abs(size), elements);
        if (size < 0) shape.domains = two_domains(shape.size);
        all.push_back(candidates_of(shape));
      }
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

// One rank is alone on its node, ranks are distributed in turn, there are three nodes, or the node
// memory is unavailable.
TEST_P(CandidatesOf, AreTheSameOnAllRanksOfSeveralNodesAndRight) {
  const std::vector<int> nodes_of_ranks[] = {{0, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 1, 2, 2}, {}};
  for (const std::vector<int>& node_of_rank : nodes_of_ranks) {
    const int size = node_of_rank.empty() ? 3 : static_cast<int>(node_of_rank.size());
    for (const std::int64_t elements : {2L, 1'000L, 30'000L, 600'000L}) {
      std::vector<std::vector<BuiltCandidate>> all;
      for (int rank = 0; rank < size; ++rank) {
        Shape shape = shape_of(GetParam(), rank, size, elements);
        shape.on_one_node = false;
        if (!node_of_rank.empty()) shape.nodes = std::make_shared<const Nodes>(node_of_rank);
        all.push_back(candidates_of(shape));
      }
      const std::string text = std::to_string(size) + " ranks, " + std::to_string(elements);
      ASSERT_FALSE(all[0].empty()) << text;
      EXPECT_EQ(all[0][0].candidate.algorithm, &default_algorithm(all[0][0].schedule.shape));
      for (std::size_t i = 0; i < all[0].size(); ++i) {
        std::vector<Schedule> schedules;
        for (const auto& of_rank : all) {
          ASSERT_EQ(of_rank.size(), all[0].size()) << text;
          EXPECT_EQ(of_rank[i].candidate, all[0][i].candidate) << text;
          EXPECT_LE(of_rank[i].schedule.node_bytes,
                    most_node_bytes(ranks_here(of_rank[i].schedule.shape)))
              << text;
          schedules.push_back(of_rank[i].schedule);
        }
        const auto verified = verify(schedules);
        EXPECT_TRUE(verified) << text << ": " << verified.error().message;
      }
    }
  }
}

TEST_P(CandidatesOf, BeginWithTheRules) {
  const Shape shape = shape_of(GetParam(), 0, 3, 1'000);
  const auto all = candidates_of(shape);
  EXPECT_EQ(all[0].candidate.algorithm, &default_algorithm(shape));
  EXPECT_EQ(all[0].candidate.tuning, Tuning{});
}

TEST(Candidates, OfALongCallAreToldApartByTheirAlgorithmsOnly) {
  const Algorithm &ring = *find_algorithm(Kind::allreduce, "node-ring"),
                  &flat = *find_algorithm(Kind::allreduce, "node-flat");
  const Candidate rule{&ring, {}}, chunks{&ring, {.chunk_bytes = 16 * 1024}}, other{&flat, {}};
  const Shape on_trial_whole = shape_of(Kind::allreduce, 0, 2, 100'000);
  const Shape longer = shape_of(Kind::allreduce, 0, 2, 1'000'000);
  ASSERT_EQ(shape_on_trial(on_trial_whole).recv.count, on_trial_whole.recv.count);
  ASSERT_LT(shape_on_trial(longer).recv.count, longer.recv.count);
  EXPECT_TRUE(trial_tells_apart(on_trial_whole, rule, chunks));
  EXPECT_TRUE(trial_tells_apart(longer, rule, other));
  EXPECT_FALSE(trial_tells_apart(longer, rule, chunks));
}

TEST(Candidates, BeginWithTheTuningOfTheRules) {
  const Shape shape = shape_of(Kind::allreduce, 0, 2, 600'000);
  const Candidate first{&default_algorithm(shape), default_tuning(shape, Processor::amd)};
  ASSERT_NE(first.tuning, Tuning{});
  EXPECT_EQ(all_for(shape_on_trial(shape), first, false, INT32_MAX)[0].candidate, first);
}

TEST_P(CandidatesOf, AreFoundAgainByName) {
  const Shape shape = shape_of(GetParam(), 0, 3, 600'000);
  for (const BuiltCandidate& one : candidates_of(shape)) {
    const Candidate& candidate = one.candidate;
    EXPECT_EQ(find_candidate(shape, candidate.algorithm->name, candidate.tuning), candidate);
  }
  EXPECT_EQ(find_candidate(shape, "pigeon", {}), std::nullopt);
  EXPECT_EQ(find_candidate(shape, default_algorithm(shape).name, {.chunk_bytes = 12'345}),
            std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CandidatesOf, testing::ValuesIn(kNodeKinds),
                         [](const auto& info) { return std::string(kind_name(info.param)); });

std::size_t algorithms_in_one_domain() {
  std::size_t count = 0;
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.kind == Kind::allreduce && needs_node(algorithm.needs) &&
        !needs_domains(algorithm.needs) && !is_direct(algorithm))
      ++count;
  return count;
}

TEST(Candidates, OfAShortCallAreTheAlgorithmsOnly) {
  EXPECT_EQ(candidates_of(shape_of(Kind::allreduce, 0, 2, 1)).size(), algorithms_in_one_domain());
  EXPECT_EQ(candidates_of(shape_of(Kind::bcast, 0, 2, 1)).size(), 1u);
  EXPECT_EQ(candidates_of(shape_of(Kind::barrier, 0, 2, 0)).size(), 2u);
}

// Of the radices of trees for a short call, 4 stands for all larger ones if there are as few ranks.
TEST(Candidates, AreTreesOfAllRadicesThatDiffer) {
  using Radices = std::vector<std::pair<int, int>>;
  const auto radices = [](Kind kind, int size, const char* name, bool in_domains) {
    Shape shape = shape_of(kind, 0, size, 1);
    if (in_domains) shape.domains = two_domains(size);
    Radices found;
    for (const BuiltCandidate& one : candidates_of(shape))
      if (one.candidate.algorithm == find_algorithm(kind, name))
        found.emplace_back(one.candidate.tuning.radix, one.candidate.tuning.radix_across);
    return found;
  };
  constexpr int kAll = Tuning::kAll;
  const Radices few{{4, kAll}, {2, kAll}};
  const Radices many{{4, kAll}, {2, kAll}, {8, kAll}, {kAll, kAll}};
  for (const Kind kind : {Kind::allreduce, Kind::barrier}) {
    EXPECT_EQ(radices(kind, 2, "node-tree", false), (Radices{{4, kAll}}));
    EXPECT_EQ(radices(kind, 4, "node-tree", false), few);
    EXPECT_EQ(radices(kind, 16, "node-tree", false), many);
    EXPECT_EQ(radices(kind, 8, "domain-tree", true), few);
    EXPECT_EQ(radices(kind, 32, "domain-tree", true), many);
    EXPECT_EQ(radices(kind, 32, "domain-tree", false), Radices{});
  }
}

TEST(Candidates, HaveOneAndTwoLevelsWhereThereAreSeveralDomains) {
  Shape shape = shape_of(Kind::allreduce, 0, 8, kMiB);
  const auto names = [&] {
    std::set<std::string> found;
    for (const BuiltCandidate& one : candidates_of(shape))
      found.insert(one.candidate.algorithm->name);
    return found;
  };
  EXPECT_EQ(names().count("domain-ring"), 0u);
  shape.domains = two_domains(8);
  EXPECT_EQ(names().count("domain-ring"), 1u);
  EXPECT_EQ(names().count("node-ring"), 1u);
  EXPECT_STREQ(candidates_of(shape)[0].candidate.algorithm->name, "domain-ring");
}

TEST(Candidates, OfALongCallDifferInTheirChunks) {
  EXPECT_EQ(candidates_of(shape_of(Kind::allreduce, 0, 2, kMiB)).size(),
            3 * algorithms_in_one_domain());
  EXPECT_EQ(candidates_of(shape_of(Kind::bcast, 0, 2, kMiB)).size(), 3u);
}

TEST(Candidates, LeaveOutWhatDoesNotApply) {
  Shape shape = shape_of(Kind::allreduce, 0, 2, kMiB);
  shape.commutative = false;
  const Candidate first{&default_algorithm(shape), {}};
  for (const BuiltCandidate& one : all_for(shape, first, false, INT32_MAX))
    EXPECT_STRNE(one.candidate.algorithm->name, "node-ring");
  EXPECT_EQ(find_candidate(shape, "node-ring", {}), std::nullopt);
  EXPECT_EQ(find_candidate(shape, "recursive-doubling", {}), std::nullopt);
}

TEST(Candidates, OfManyRanksAreBuiltInBatches) {
  constexpr std::int32_t kIterations = 16;
  Shape shape = shape_of(Kind::allreduce, 0, 1'000, 100'000);
  shape.on_one_node = false;
  std::size_t in_batches = 0;
  for (const BuiltCandidate& one :
       all_for(shape, {&default_algorithm(shape), {}}, false, kIterations)) {
    EXPECT_LT(one.schedule.steps.size(), 200u) << one.candidate.algorithm->name;
    in_batches += one.schedule.next_batch != nullptr;
  }
  EXPECT_GT(in_batches, 0u);
}

// Some algorithms divide what all ranks send together into chunks, so that less than a chunk per
// rank is several chunks.
TEST(Candidates, OfMiddleLengthDifferInTheirChunksWhereThatShows) {
  const auto of = [](Kind kind, int size, std::int64_t elements, const char* name) {
    const auto all = candidates_of(shape_of(kind, 0, size, elements));
    return std::count_if(all.begin(), all.end(), [&](const BuiltCandidate& one) {
      return one.candidate.algorithm == find_algorithm(kind, name);
    });
  };
  EXPECT_GT(of(Kind::allreduce, 8, 1'500, "node-doubling"), 1);
  EXPECT_GT(of(Kind::scan, 3, 1'500, "node-chain"), 1);
  EXPECT_EQ(of(Kind::allreduce, 8, 2, "node-doubling"), 1);
}

TEST(Candidates, AreBuiltWhenTheyAreAskedFor) {
  const Shape shape = shape_on_trial(shape_of(Kind::allreduce, 0, 3, kMiB));
  const Candidate first{&default_algorithm(shape), {}};
  Candidates candidates(shape, first, false, INT32_MAX);
  ASSERT_GT(candidates.count(), 3u);
  const Candidate last = candidates[candidates.count() - 1];
  candidates.bring_forward(last);
  EXPECT_EQ(candidates[0], first);
  EXPECT_EQ(candidates[1], last);
  const auto built = [&] {
    std::size_t built = 0;
    for (std::size_t i = 0; i < candidates.count(); ++i) built += candidates.is_built(i);
    return built;
  };
  EXPECT_EQ(built(), 1u);
  const Schedule* const second = candidates.schedule(1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->algorithm, std::string(last.algorithm->name));
  EXPECT_EQ(built(), 2u);
  EXPECT_EQ(candidates.schedule(1), second);
  candidates.bring_forward(first);
  EXPECT_EQ(candidates[0], first);
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
