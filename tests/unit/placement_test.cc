// Compares placements with the figures of the paper and of the design.
#include "topo/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace weft {
namespace {

Topology machine(int cores, int numa_nodes) {
  Topology topology = plain_topology(cores);
  for (int core = 0; core < cores; ++core)
    topology.numa_of_cpu[static_cast<std::size_t>(core)] = core / (cores / numa_nodes);
  return topology;
}

// Returns the topology that hwloc describes by these words.
Topology described(const std::string& words) {
  const auto topology = read_topology(words);
  EXPECT_TRUE(topology) << topology.error().message;
  return topology ? *topology : Topology{};
}

// Returns the cores of ranks that are spread as in the paper.
NodeRanks spread_ranks(const Topology& topology, int ranks) {
  return {*rank_cores(topology, ranks), {}};
}

constexpr PlacementPolicy::Kind kNuma = PlacementPolicy::Kind::numa;
constexpr PlacementPolicy::Kind kOddEven = PlacementPolicy::Kind::odd_even;

std::vector<int> thread_cores(PlacementPolicy::Kind kind, const Topology& topology,
                              const NodeRanks& ranks) {
  std::vector<int> cores;
  for (int rank = 0; rank < static_cast<int>(ranks.core_of_rank.size()); ++rank)
    cores.push_back(*place(PlacementPolicy{kind, 1, {}}, topology, ranks, rank));
  return cores;
}

// Puts ranks on all cores except `idle`.
NodeRanks ranks_beside(int cores, std::vector<int> idle) {
  NodeRanks ranks;
  for (int core = 0; core < cores; ++core)
    if (std::find(idle.begin(), idle.end(), core) == idle.end()) ranks.core_of_rank.push_back(core);
  return ranks;
}

TEST(Placement, NumaOnOneNodeOf64CoresAsInThePaper) {
  const Topology topology = machine(64, 1);
  const NodeRanks ranks = ranks_beside(64, {31, 63});
  const PlacementPolicy numa{PlacementPolicy::Kind::numa, 1, {}};
  for (int rank = 0; rank < 62; ++rank)
    EXPECT_EQ(*place(numa, topology, ranks, rank), rank <= 30 ? 31 : 63) << rank;
}

TEST(Placement, NumaStaysInsideTheNumaNode) {
  const Topology topology = machine(8, 2);
  const NodeRanks ranks = ranks_beside(8, {3, 7});
  const PlacementPolicy numa{PlacementPolicy::Kind::numa, 1, {}};
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(*place(numa, topology, ranks, rank), rank < 3 ? 3 : 7) << rank;
}

TEST(Placement, NumaNeedsAFreeCore) {
  const auto placed = place(PlacementPolicy{kNuma, 1, {}}, machine(4, 2), ranks_beside(4, {}), 0);
  ASSERT_FALSE(placed);
  EXPECT_NE(placed.error().message.find("4 ranks leave none free"), std::string::npos);
}

TEST(Placement, WithoutAFreeCoreInItsNumaNodeTheThreadStaysBesideTheRank) {
  const std::vector<int> expected = {-1, -1, -1, -1, 7, 7, 7};
  EXPECT_EQ(thread_cores(kNuma, machine(8, 2), ranks_beside(8, {7})), expected);
}

TEST(Placement, NumaNeedsBoundRanks) {
  const auto placed =
      place(PlacementPolicy{kNuma, 1, {}}, machine(4, 1), NodeRanks{{-1, -1}, {}}, 1);
  ASSERT_FALSE(placed);
  EXPECT_NE(placed.error().message.find("bound to cores"), std::string::npos);
}

// Ranks are on the first cores. The paper's equation alone would name core 7, which has a rank.
TEST(Placement, NumaPicksNoCoreThatCarriesARank) {
  std::vector<int> expected(14, 14);
  for (std::size_t rank = 8; rank < 14; ++rank) expected[rank] = 15;
  EXPECT_EQ(thread_cores(kNuma, machine(16, 1), ranks_beside(16, {14, 15})), expected);
}

// This is equation 1, corrected to ⌈(⌊M/δ⌋ + 1)·δ⌉ − 1 with δ = cores / (cores − ranks).
TEST(Placement, OfSpreadRanksIsTheEquations) {
  for (int cores = 2; cores <= 64; ++cores) {
    const Topology topology = machine(cores, 1);
    for (int ranks = 1; ranks < cores; ++ranks) {
      const NodeRanks spread = spread_ranks(topology, ranks);
      const int idle = cores - ranks;
      for (int rank = 0; rank < ranks; ++rank) {
        const int core = spread.core_of_rank[static_cast<std::size_t>(rank)];
        const int numa_block = core * idle / cores, odd_even_block = rank % idle;
        const auto position = [&](int block) {
          return ((block + 1) * cores + idle - 1) / idle - 1;
        };
        ASSERT_EQ(*place(PlacementPolicy{kNuma, 1, {}}, topology, spread, rank),
                  position(numa_block));
        ASSERT_EQ(*place(PlacementPolicy{kOddEven, 1, {}}, topology, spread, rank),
                  position(odd_even_block));
      }
    }
  }
}

TEST(Placement, OddEvenTakesTurns) {
  const auto threads = thread_cores(kOddEven, machine(64, 1), spread_ranks(machine(64, 1), 62));
  ASSERT_EQ(threads.size(), 62);
  for (std::size_t rank = 0; rank < threads.size(); ++rank)
    EXPECT_EQ(threads[rank], rank % 2 == 0 ? 31 : 63);
}

// The paper's figure 1 has 8 cores in two NUMA nodes.
TEST(Placement, RanksAreSpreadAsInThePaper) {
  EXPECT_EQ(*rank_cores(machine(8, 2), 4), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(*rank_cores(machine(8, 2), 6), (std::vector<int>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(*rank_cores(machine(8, 2), 8), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_FALSE(rank_cores(machine(8, 2), 9));
}

// A dozen machines, from a laptop to two sockets of 64 cores; `threads` are the CPUs of a core.
struct Machine {
  const char* words;
  int cores, numa_nodes, threads;
};
constexpr Machine kMachines[] = {
    {"package:1 core:2 pu:2", 2, 1, 2},
    {"package:1 l3:1 core:4 pu:2", 4, 1, 2},
    {"package:1 l3:2 core:4 pu:2", 8, 1, 2},
    {"package:1 core:16 pu:1", 16, 1, 1},
    {"package:2 core:12 pu:2", 24, 2, 2},
    {"package:1 numa:4 core:12 pu:1", 48, 4, 1},
    {"package:2 core:24 pu:1", 48, 2, 1},
    {"package:2 core:20 pu:2", 40, 2, 2},
    {"package:1 core:64 pu:4", 64, 1, 4},
    {"package:1 numa:4 core:16 pu:4", 64, 4, 4},
    {"package:2 numa:4 l3:4 core:4 pu:2", 128, 8, 2},
    {"package:2 l3:8 core:8 pu:1", 128, 2, 1},
    {"package:2 core:32 pu:1(indexes=package:core)", 64, 2, 1},
};

// On every machine with any number of ranks, each thread gets a core that carries no rank, in its
// rank's NUMA node if one is free there. Neighbours get different cores if two are free.
TEST(Placement, OnEveryMachineThreadsGetFreeCores) {
  for (const Machine& kind : kMachines) {
    const Topology topology = described(kind.words);
    const auto cores = topology.cores();
    ASSERT_EQ(cores.size(), kind.cores) << kind.words;
    ASSERT_EQ(topology.cpus(), kind.cores * kind.threads) << kind.words;
    for (int ranks = 1; ranks < kind.cores; ++ranks) {
      const NodeRanks on = spread_ranks(topology, ranks);
      const auto free = free_cores(topology, on);
      ASSERT_EQ(free.size(), kind.cores - ranks) << kind.words;
      const auto is_free = [&](int core) {
        return std::find(free.begin(), free.end(), core) != free.end();
      };
      int previous = -1;
      for (int rank = 0; rank < ranks; ++rank) {
        const int own = on.core_of_rank[static_cast<std::size_t>(rank)];
        const int numa = *place(PlacementPolicy{kNuma, 1, {}}, topology, on, rank);
        const bool has_one = std::any_of(free.begin(), free.end(), [&](int core) {
          return topology.numa(core) == topology.numa(own);
        });
        ASSERT_EQ(has_one, numa >= 0) << kind.words << " " << ranks;
        ASSERT_TRUE(!has_one || (is_free(numa) && topology.numa(numa) == topology.numa(own)));
        const int other = *place(PlacementPolicy{kOddEven, 1, {}}, topology, on, rank);
        ASSERT_TRUE(is_free(other));
        ASSERT_TRUE(free.size() == 1 || other != previous);
        previous = other;
      }
    }
  }
}

// A rank on one hyper-thread occupies its core; a rank bound to several cores occupies all.
TEST(Placement, HyperThreadsAreOneCore) {
  const Topology topology = described("package:1 core:4 pu:2");
  const NodeRanks ranks = ranks_on(topology, {{1}, {2, 3}, {4, 5, 6, 7}});
  EXPECT_EQ(ranks.core_of_rank, (std::vector<int>{0, 2, 4}));
  EXPECT_TRUE(free_cores(topology, ranks).empty());
  EXPECT_EQ(free_cores(topology, ranks_on(topology, {{1}, {4, 5}})), (std::vector<int>{2, 6}));
}

TEST(Placement, ARankOnAllCoresIsNotBound) {
  const Topology topology = described("package:1 core:2 pu:2");
  const NodeRanks ranks = ranks_on(topology, {{0, 1, 2, 3}, {}});
  EXPECT_EQ(ranks.core_of_rank, (std::vector<int>{-1, -1}));
  EXPECT_EQ(free_cores(topology, ranks).size(), 2);
}

TEST(Placement, PackPutsKThreadsOnEachFreeCore) {
  const Topology topology = machine(8, 1);
  const NodeRanks ranks = ranks_beside(8, {3, 7});
  const PlacementPolicy pack{PlacementPolicy::Kind::pack, 3, {}};
  const std::vector<int> expected = {3, 3, 3, 7, 7, 7};
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(*place(pack, topology, ranks, rank), expected[static_cast<std::size_t>(rank)]);
}

std::vector<int> packed(int threads_per_core, const Topology& topology, const NodeRanks& ranks) {
  std::vector<int> cores;
  for (int rank = 0; rank < static_cast<int>(ranks.core_of_rank.size()); ++rank)
    cores.push_back(
        *place({PlacementPolicy::Kind::pack, threads_per_core, {}}, topology, ranks, rank));
  return cores;
}

TEST(Placement, PackStaysInsideTheNumaNode) {
  const NodeRanks ten = ranks_beside(12, {5, 11});
  EXPECT_EQ(packed(6, machine(12, 2), ten), (std::vector<int>{5, 5, 5, 5, 5, 11, 11, 11, 11, 11}));
  EXPECT_EQ(packed(6, machine(12, 1), ten), (std::vector<int>{5, 5, 5, 5, 5, 5, 11, 11, 11, 11}));
  const Topology four = described("package:1 numa:4 core:16 pu:4");
  const NodeRanks ranks = spread_ranks(four, 56);
  const std::vector<int> cores = packed(7, four, ranks);
  for (std::size_t rank = 0; rank < cores.size(); ++rank)
    EXPECT_EQ(four.numa(cores[rank]), four.numa(ranks.core_of_rank[rank])) << rank;
}

TEST(Placement, PackGoesToAnotherNumaNodeWhereItsOwnIsFull) {
  const NodeRanks ranks = ranks_beside(8, {6, 7});  // the first NUMA node has no free core left
  EXPECT_EQ(packed(3, machine(8, 2), ranks), (std::vector<int>{6, 7, 7, 7, 6, 6}));
  const NodeRanks unbound{{-1, -1, -1, -1}, {}};
  EXPECT_EQ(packed(2, machine(8, 2), unbound), (std::vector<int>{0, 0, 1, 1}));
}

TEST(Placement, PackWithTooFewFreeCoresSaysHowMany) {
  const PlacementPolicy pack{PlacementPolicy::Kind::pack, 2, {}};
  const auto placed = place(pack, machine(8, 1), ranks_beside(8, {3, 7}), 0);
  ASSERT_FALSE(placed);
  EXPECT_NE(placed.error().message.find("needs 3 cores"), std::string::npos);
  EXPECT_NE(placed.error().message.find("2 are free"), std::string::npos);
}

TEST(Placement, AListNamesACoreForEachRank) {
  const PlacementPolicy list{PlacementPolicy::Kind::list, 1, {5, 6}};
  const NodeRanks two{{0, 1}, {}};
  EXPECT_EQ(*place(list, Topology{}, two, 0), 5);  // an empty topology: it could not be read
  EXPECT_EQ(*place(list, machine(8, 1), two, 1), 6);
  const auto too_few = place(list, machine(8, 1), NodeRanks{{0, 1, 2}, {}}, 0);
  ASSERT_FALSE(too_few);
  EXPECT_NE(too_few.error().message.find("2 cores for 3 ranks"), std::string::npos);
  const auto not_there = place(list, machine(6, 1), two, 0);
  ASSERT_FALSE(not_there);
  EXPECT_NE(not_there.error().message.find("names core 6"), std::string::npos);
}

TEST(Placement, WithoutAFreeCoreThereIsNothingThatDoesNotFit) {
  const PlacementPolicy pack{PlacementPolicy::Kind::pack, 2, {}};
  const NodeRanks everywhere{{0, 1, 2, 3}, {}};
  EXPECT_TRUE(fits(pack, machine(4, 1), everywhere));
  EXPECT_FALSE(place(pack, machine(4, 1), everywhere, 0));
  EXPECT_FALSE(
      fits(PlacementPolicy{PlacementPolicy::Kind::pack, 1, {}}, machine(6, 1), everywhere));
}

TEST(Placement, ThePictureSaysWhatIsThere) {
  EXPECT_EQ(picture(machine(8, 1), NodeRanks{{0, 1, 2, 5}, {}}),
            "cores 0 to 7, ranks on 0 to 2, 5, free 3 to 4, 6 to 7");
  EXPECT_EQ(picture(machine(2, 1), NodeRanks{{-1, -1}, {}}),
            "cores 0 to 1, ranks bound to none of them, free 0 to 1");
  EXPECT_EQ(picture(machine(2, 1), NodeRanks{{0, 1}, {}}),
            "cores 0 to 1, ranks on 0 to 1, free none");
}

TEST(Placement, BindStaysBesideTheRank) {
  EXPECT_EQ(*place(PlacementPolicy{}, Topology{}, NodeRanks{{0}, {}}, 0), -1);
}

TEST(Placement, SaysWhetherRanksShareCpus) {
  EXPECT_FALSE(share_cpus({{0}, {1}}));
  EXPECT_FALSE(share_cpus({{0, 1}, {0, 1}}));
  EXPECT_TRUE(share_cpus({{0, 1}, {0, 1}, {0, 1}}));
  EXPECT_TRUE(share_cpus({{0}, {1}, {1}}));
  EXPECT_FALSE(share_cpus({}));
}

TEST(Topology, ReadsThisMachine) {
  const auto topology = read_topology();
  ASSERT_TRUE(topology) << topology.error().message;
  for (const int cpu : allowed_cpus()) EXPECT_TRUE(topology->has(cpu));
}

TEST(Topology, RefusesWhatIsNoMachine) {
  for (const char* words : {"moon:2", "/dev/null", ""}) {
    const auto topology = read_topology(words);
    ASSERT_FALSE(topology) << words;
    EXPECT_NE(topology.error().message.find("lstopo"), std::string::npos);
  }
}

TEST(Domain, IsTheOneThatHasAllCpus) {
  Topology topology = plain_topology(6);
  topology.numa_of_cpu = {0, 0, 1, 1, -1, 1};
  EXPECT_EQ(domain_of(topology, {0}), 0);
  EXPECT_EQ(domain_of(topology, {2, 3, 5}), 1);
  EXPECT_EQ(domain_of(topology, {1, 2}), kNoDomain);
  EXPECT_EQ(domain_of(topology, {3, 4}), kNoDomain);
  EXPECT_EQ(domain_of(topology, {6}), kNoDomain);
  EXPECT_EQ(domain_of(topology, {}), kNoDomain);
}

}  // namespace
}  // namespace weft
