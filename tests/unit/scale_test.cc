// What a process keeps for each communicator in a job of 1,024 nodes with 128 ranks each, counted
// on synthetic layouts; and how ranks share one of Weft's communicators by tag ranges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/equals_shared.h"
#include "base/repeated.h"
#include "coll/algorithm.h"
#include "schedule/nodes.h"
#include "schedule/schedule_cache.h"
#include "select/selector.h"
#include "transport/rank_map.h"
#include "transport/tag_ranges.h"

namespace weft {
namespace {

constexpr int kNodes = 1024, kOnEach = 128, kRanks = kNodes * kOnEach;
constexpr std::size_t kMost_bytes = 2048;

template <class NodeOf>
std::vector<int> by_rank(int ranks, NodeOf node_of) {
  std::vector<int> numbers;
  for (int rank = 0; rank < ranks; ++rank) numbers.push_back(node_of(rank));
  return numbers;
}

int in_blocks(int rank) {
  return rank / kOnEach;
}
int in_turn(int rank) {
  return rank % kNodes;
}

// Compares Nodes, which may follow a rule, with plain tables.
void expect_same(const Nodes& nodes, const std::vector<int>& node_of,
                 const std::vector<int>& domain_of) {
  std::vector<std::vector<int>> on_node;
  std::vector<int> number_of(1 << 18, -1);
  for (int rank = 0; rank < static_cast<int>(node_of.size()); ++rank) {
    int& number = number_of[static_cast<std::size_t>(node_of[static_cast<std::size_t>(rank)])];
    if (number < 0) {
      number = static_cast<int>(on_node.size());
      on_node.emplace_back();
    }
    on_node[static_cast<std::size_t>(number)].push_back(rank);
  }
  ASSERT_EQ(nodes.count(), static_cast<int>(on_node.size()));
  for (int node = 0; node < nodes.count(); ++node) {
    auto& here = on_node[static_cast<std::size_t>(node)];
    if (!domain_of.empty())
      std::stable_sort(here.begin(), here.end(), [&](int one, int other) {
        return domain_of[static_cast<std::size_t>(one)] <
               domain_of[static_cast<std::size_t>(other)];
      });
    ASSERT_EQ(nodes.ranks(node).listed(), here) << node;
    for (int local_rank = 0; local_rank < nodes.ranks_on(node); ++local_rank) {
      const int rank = here[static_cast<std::size_t>(local_rank)];
      ASSERT_EQ(nodes.of(rank), node);
      ASSERT_EQ(nodes.local_rank(rank), local_rank);
    }
  }
}

TEST(Scale, NodesOfAHundredThousandRanksTakeAFewHundredBytes) {
  for (const auto rule : {in_blocks, in_turn}) {
    const auto node_of = by_rank(kRanks, rule);
    const Nodes nodes(node_of);
    EXPECT_LE(nodes.bytes(), 256U);
    expect_same(nodes, node_of, {});
  }
}

// On each node, ranks are bound to cores of its domains in turn.
TEST(Scale, NodesWithDomainsTakeWhatOneNodeHas) {
  for (const auto rule : {in_blocks, in_turn}) {
    const auto node_of = by_rank(kRanks, rule);
    const auto domain_of =
        by_rank(kRanks, [&](int rank) { return (rule == in_blocks ? rank : rank / kNodes) % 4; });
    const Nodes nodes(node_of, domain_of);
    EXPECT_LE(nodes.bytes(), 1024U);
    expect_same(nodes, node_of, domain_of);
  }
}

TEST(Scale, NodesOfRowsAndColumnsAndOfALastShortNode) {
  for (const int ranks : {1, 7, 127, 128, 129, 1000, 1024 * 5 + 3}) {
    for (const auto rule : {in_blocks, in_turn}) {
      const auto node_of = by_rank(ranks, rule);
      const Nodes nodes(node_of);
      EXPECT_LE(nodes.bytes(), 256U);
      expect_same(nodes, node_of, {});
    }
  }
  // Takes every 128th rank, which is one on each node.
  const Nodes column(by_rank(kNodes, [](int rank) { return rank; }));
  EXPECT_LE(column.bytes(), 256U);
  EXPECT_FALSE(column.some_share());
}

// Layouts without a rule have tables. Communicators with the same layout share them.
TEST(Scale, NodesThatFollowNoRuleHaveTables) {
  std::vector<int> node_of = by_rank(4096, in_blocks), domain_of(node_of.size());
  std::mt19937 random(7);
  std::shuffle(node_of.begin(), node_of.end(), random);
  for (int& domain : domain_of) domain = static_cast<int>(random() % 3);
  const Nodes nodes(node_of, domain_of);
  expect_same(nodes, node_of, domain_of);
  EXPECT_LE(nodes.bytes(), 4096U * 12 + 1024);
  EqualsShared<Nodes> all;
  EXPECT_EQ(all.get(nodes), all.get(Nodes(node_of, domain_of)));
}

TEST(Scale, FactsThatAreTheSameOnAllNodesAreKeptOnce) {
  const Repeated<int> same(std::vector<int>(kRanks, 3), {1, kOnEach});
  EXPECT_LE(same.bytes(), 64U);
  const Repeated<int> by_core(by_rank(kRanks, [](int rank) { return rank % kOnEach / 16; }),
                              {1, kOnEach, kNodes});
  EXPECT_LE(by_core.bytes(), 64U + kOnEach * sizeof(int));
  for (int rank = 0; rank < kRanks; ++rank)
    ASSERT_EQ(by_core.at(static_cast<std::size_t>(rank)), rank % kOnEach / 16);
}

std::vector<int> every(int stride, int first, int count) {
  return by_rank(count, [&](int rank) { return first + rank * stride; });
}

TEST(Scale, RanksOfRowsColumnsAndBlocksTakeAFewBytes) {
  for (const auto& ranks : {every(1, 0, kRanks), every(kOnEach, 5, kNodes), every(1, 4096, kOnEach),
                            every(-1, kRanks - 1, kRanks)}) {
    const RankMap map(ranks);
    EXPECT_LE(map.bytes(), 64U);
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
      ASSERT_EQ(map.at(rank), ranks[static_cast<std::size_t>(rank)]);
  }
  EXPECT_TRUE(RankMap(every(1, 0, 9)).is_identity());
  EXPECT_FALSE(RankMap(every(1, 1, 9)).is_identity());
  EXPECT_FALSE(RankMap({1, 0}).is_identity());
}

TEST(Scale, RanksInAnyOrderAreFound) {
  std::vector<int> ranks(5000);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(ranks.begin(), ranks.begin() + 250 * i, random);
    const RankMap map(ranks);
    for (int rank = 0; rank < 5000; ++rank)
      ASSERT_EQ(map.at(rank), ranks[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(shared_map(ranks), shared_map(ranks));
  }
}

// Adds up what a communicator of the whole job keeps beside the fixed part, whose size
// src/runtime/comm/communicators.cc and src/runtime/adaptive/call_classes.cc assert.
TEST(Scale, ACommunicatorOfTheWholeJobTakesNoMoreThanTwoKiB) {
  constexpr std::size_t kFixed_bytes = 1832;
  const Nodes nodes(by_rank(kRanks, in_blocks));
  const RankMap map(every(1, 0, kRanks));
  EXPECT_LE(kFixed_bytes + nodes.bytes() + map.bytes(), kMost_bytes);
}

// A schedule of short messages must not have a round for each rank.
TEST(Scale, DefaultSchedulesOfShortMessagesGrowWithTheLogarithm) {
  const auto nodes = std::make_shared<const Nodes>(by_rank(kRanks, in_blocks));
  for (const Kind kind :
       {Kind::barrier, Kind::bcast, Kind::reduce, Kind::allreduce, Kind::scan, Kind::exscan}) {
    for (const bool by_levels : {false, true}) {
      Shape shape;
      shape.kind = kind;
      shape.rank = 77;
      shape.size = kRanks;
      shape.commutative = true;
      if (by_levels) shape.nodes = nodes;
      if (kind != Kind::barrier) shape.send = shape.recv = {1, 8, 8, 0, 8, true};
      const Schedule made = build(default_algorithm(shape), shape);
      EXPECT_LE(made.steps.size(), 600U) << kind_name(kind) << " " << made.algorithm;
    }
  }
}

TEST(Scale, SchedulesOfAllCommunicatorsTogetherAreBounded) {
  constexpr int kCommunicators = 2000;
  const std::size_t steps = 200;
  std::vector<std::unique_ptr<ScheduleCache>> caches;
  for (int i = 0; i < kCommunicators; ++i) {
    caches.push_back(std::make_unique<ScheduleCache>());
    for (int count = 1; count <= 8; ++count) {
      Shape shape;
      shape.recv.count = count;
      caches.back()->find_or(shape, &caches, [&] {
        Schedule made;
        made.steps.resize(steps);
        return made;
      });
    }
  }
  std::size_t last_ones = 0;
  for (const auto& cache : caches) last_ones += cache->size() == 1 ? cache->bytes() : 0;
  EXPECT_LE(ScheduleCache::bytes_of_all(), ScheduleCache::kMostOfAll_bytes + last_ones);
  // A schedule that is larger than all caches may be is not kept.
  Schedule huge;
  huge.steps.resize(2 * ScheduleCache::kMost_bytes / sizeof(Step));
  ScheduleCache one_more;
  EXPECT_EQ(one_more.find_or({}, &caches, [&] { return huge; })->steps.size(), huge.steps.size());
  EXPECT_EQ(one_more.size(), 0U);
  caches.clear();
  EXPECT_EQ(ScheduleCache::bytes_of_all(), 0U);
}

TEST(TagRanges, HaveTagsOfTheirOwnBelowTheGreatest) {
  for (const std::int64_t greatest :
       {std::int64_t{32767}, (std::int64_t{1} << 20) - 1, (std::int64_t{1} << 29) - 1,
        (std::int64_t{1} << 31) - 1, std::int64_t{1'000'000}}) {
    const TagsOfAll all(greatest);
    ASSERT_GE(all.tag_ranges, 1);
    const Tags alone = all.alone(), first = all.of(0), last = all.of(all.tag_ranges - 1);
    EXPECT_LT(alone.of_persistent(UINT32_MAX), first.of_single(0));
    EXPECT_LT(last.of_persistent(UINT32_MAX), greatest);
    EXPECT_LT(first.of_single(UINT32_MAX), first.of_persistent(0));
    for (const Tags& tags : {alone, first, last}) {
      EXPECT_EQ(tags.number_of(tags.of_single(5)), 5);
      EXPECT_EQ(tags.number_of(tags.of_persistent(5)), static_cast<int>(tags.each) + 5);
    }
    if (all.tag_ranges > 1) {
      EXPECT_LT(first.of_persistent(UINT32_MAX), all.of(1).of_single(0));
    }
  }
  // The tags of MPICH's communicators.
  EXPECT_GE(TagsOfAll((std::int64_t{1} << 29) - 1).tag_ranges, 2048);
  EXPECT_GE(TagsOfAll((std::int64_t{1} << 29) - 1).of(0).each, 32768U);
}

TEST(TagRanges, AreFreeFromTheLastThatIsInUse) {
  TagRanges tag_ranges(200);
  EXPECT_EQ(tag_ranges.first_of_free(), 0);
  tag_ranges.take(0);
  tag_ranges.take(70);
  EXPECT_EQ(tag_ranges.first_of_free(), 71);
  EXPECT_EQ(tag_ranges.in_use(), 2);
  EXPECT_EQ(TagRanges::lowest_of(tag_ranges.free_bits()), 1);
  tag_ranges.give_back(70);
  EXPECT_EQ(tag_ranges.first_of_free(), 1);
  for (int tag_range = 1; tag_range < 200; ++tag_range) tag_ranges.take(tag_range);
  EXPECT_EQ(TagRanges::lowest_of(tag_ranges.free_bits()), -1);
  tag_ranges.give_back(199);
  EXPECT_EQ(TagRanges::lowest_of(tag_ranges.free_bits()), 199);
}

// Ranks make and give up communicators, as runtime/comm/internal_communicators.cc does: two that
// have a rank in common never get the same tag range.
TEST(TagRanges, AreNeverTakenTwiceOnARank) {
  constexpr int kSome = 6, kCount = 12;
  std::mt19937 random(11);
  std::vector<TagRanges> ranks(kSome, TagRanges(kCount));
  struct Made {
    int tag_range;
    std::vector<int> members;
  };
  std::vector<Made> alive;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (!alive.empty() && random() % 2) {
      // One rank gives up the communicator before the others do.
      Made& made = alive[random() % alive.size()];
      ranks[static_cast<std::size_t>(made.members.back())].give_back(made.tag_range);
      made.members.pop_back();
      std::erase_if(alive, [](const Made& one) { return one.members.empty(); });
      continue;
    }
    std::vector<int> members;
    for (int rank = 0; rank < kSome; ++rank)
      if (random() % 2) members.push_back(rank);
    if (members.empty()) continue;
    int tag_range = 0;
    std::vector<std::int64_t> free(1, -1);
    for (const int rank : members) {
      const TagRanges& own = ranks[static_cast<std::size_t>(rank)];
      tag_range = std::max(tag_range, own.first_of_free());
      free[0] &= own.free_bits()[0];
    }
    if (tag_range >= kCount) tag_range = TagRanges::lowest_of(free);
    if (tag_range < 0) {
      ++refused;
      continue;
    }
    for (const Made& other : alive)
      for (const int rank : members)
        ASSERT_FALSE(other.tag_range == tag_range &&
                     std::find(other.members.begin(), other.members.end(), rank) !=
                         other.members.end());
    for (const int rank : members) ranks[static_cast<std::size_t>(rank)].take(tag_range);
    alive.push_back({tag_range, members});
  }
  EXPECT_LT(refused, 10'000);
}

}  // namespace
}  // namespace weft
