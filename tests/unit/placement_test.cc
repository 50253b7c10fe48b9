// The placements against the figures of the paper and of the design.
#include "topo/placement.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft {
namespace {

Topology machine(int cores, int numa_nodes) {
  Topology topology;
  for (int core = 0; core < cores; ++core)
    topology.numa_of_core.push_back(core / (cores / numa_nodes));
  return topology;
}

// Ranks on all cores but `idle`.
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

TEST(Placement, NumaWithoutAFreeCoreStaysWithTheTask) {
  EXPECT_EQ(numa_position(4, 4, 2), 2);
  EXPECT_EQ(numa_position(4, 5, 1), 1);
}

TEST(Placement, NumaWithUnboundRanksStaysBesideTheRank) {
  const PlacementPolicy numa{PlacementPolicy::Kind::numa, 1, {}};
  EXPECT_EQ(*place(numa, machine(4, 1), NodeRanks{{-1, -1}}, 1), -1);
}

TEST(Placement, PackPutsKThreadsOnEachFreeCore) {
  const Topology topology = machine(8, 1);
  const NodeRanks ranks = ranks_beside(8, {3, 7});
  const PlacementPolicy pack{PlacementPolicy::Kind::pack, 3, {}};
  const std::vector<int> expected = {3, 3, 3, 7, 7, 7};
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(*place(pack, topology, ranks, rank), expected[static_cast<std::size_t>(rank)]);
}

TEST(Placement, PackWithTooFewFreeCoresSaysHowMany) {
  const PlacementPolicy pack{PlacementPolicy::Kind::pack, 2, {}};
  const auto placed = place(pack, machine(8, 1), ranks_beside(8, {3, 7}), 0);
  ASSERT_FALSE(placed);
  EXPECT_NE(placed.error().message.find("needs 3 cores"), std::string::npos);
  EXPECT_NE(placed.error().message.find("2 are free"), std::string::npos);
}

TEST(Placement, ListRepeats) {
  const PlacementPolicy list{PlacementPolicy::Kind::list, 1, {5, 6}};
  EXPECT_EQ(*place(list, Topology{}, NodeRanks{{0, 1, 2}}, 0), 5);
  EXPECT_EQ(*place(list, Topology{}, NodeRanks{{0, 1, 2}}, 2), 5);
  EXPECT_EQ(*place(list, Topology{}, NodeRanks{{0, 1, 2}}, 1), 6);
}

TEST(Placement, BindStaysBesideTheRank) {
  EXPECT_EQ(*place(PlacementPolicy{}, Topology{}, NodeRanks{{0}}, 0), -1);
}

TEST(Topology, ReadsThisMachine) {
  const auto topology = read_topology();
  ASSERT_TRUE(topology) << topology.error().message;
  for (const int core : allowed_cores()) {
    ASSERT_LT(core, topology->cores());
    EXPECT_GE(topology->numa_of_core[static_cast<std::size_t>(core)], 0);
  }
}

TEST(Domain, IsTheOneThatHasAllCores) {
  const Topology topology{{0, 0, 1, 1, -1, 1}};
  EXPECT_EQ(domain_of(topology, {0}), 0);
  EXPECT_EQ(domain_of(topology, {2, 3, 5}), 1);
  EXPECT_EQ(domain_of(topology, {1, 2}), kNoDomain);
  EXPECT_EQ(domain_of(topology, {3, 4}), kNoDomain);
  EXPECT_EQ(domain_of(topology, {6}), kNoDomain);
  EXPECT_EQ(domain_of(topology, {}), kNoDomain);
}

}  // namespace
}  // namespace weft
