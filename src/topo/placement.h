// Placement: chooses the core of each rank's progress thread on a node. Denis, Jaeger, Jeannot,
// Pérache, Taboada, IJHPCA 33(6), 2019, sections 4 and 5; JHPCN jh250041, Topic 1 (several progress
// threads on one core).
// The paper's equations give positions of cores, and assume that ranks are spread as by
// rank_cores(). Here a thread gets a core without a rank wherever the ranks are; for ranks spread
// as assumed it is the core of the equation. A core is named by its first CPU.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "topo/topology.h"

namespace weft {

// The cores of a node's ranks; equal on all of them, so that they place threads alike without
// communication.
struct NodeRanks {
  std::vector<int> core_of_rank;   // by local rank, the first it is bound to; -1: it is not bound
  std::vector<int> further_cores;  // that ranks are bound to besides
};

// Computes the cores from the CPUs that each rank may run on. A rank that may use all cores is not
// bound.
NodeRanks ranks_on(const Topology& topology, const std::vector<std::vector<int>>& cpus_of_rank);

// Returns the cores without a rank, in the order of Topology::cores().
std::vector<int> free_cores(const Topology& topology, const NodeRanks& ranks);

// Returns the paper's spread of ranks (figure 1): consecutive ranks in each NUMA node, in
// proportion to its cores, with the free cores evenly among them. More ranks than cores are an
// error.
Result<std::vector<int>> rank_cores(const Topology& topology, int ranks);

// Returns an error if the policy cannot be met: cores that the machine lacks, fewer cores listed
// than ranks, or more threads than the free cores may carry. Having no free core at all is no
// error.
Result<bool> fits(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks);

// Describes the node: "cores 0 to 7, ranks on 0 to 5, free 6 to 7".
std::string picture(const Topology& topology, const NodeRanks& ranks);

// Returns the core for the thread of `local_rank`; -1 to stay where the rank runs (bind).
Result<int> place(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks,
                  int local_rank);

}  // namespace weft
