// Placement: on which core the progress thread of each rank of a node runs.
// Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, sections 4 and 5; JHPCN jh250041,
// Topic 1 (several progress threads on one core).
// The paper's equations say positions of cores and suppose that ranks are spread as rank_cores()
// does. Here a thread gets a core that carries no rank wherever the ranks are; of ranks that are
// spread so, the one that the equation says. A core is named by its first CPU.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "topo/topology.h"

namespace weft {

// Where the ranks of a node are; the same on all of them, so that they place alike without talking.
struct NodeRanks {
  std::vector<int> core_of_rank;   // by local rank, the first it is bound to; -1: it is not bound
  std::vector<int> further_cores;  // that ranks are bound to besides
};

// From the CPUs that each rank may run on. One that may run on all cores is not bound.
NodeRanks ranks_on(const Topology& topology, const std::vector<std::vector<int>>& cpus_of_rank);

// The cores that carry no rank, in the order of Topology::cores().
std::vector<int> free_cores(const Topology& topology, const NodeRanks& ranks);

// The paper's spread of ranks (its figure 1): consecutive ranks in each NUMA node, as many as its
// cores deserve, and the cores left free evenly among them. Error: more ranks than cores.
Result<std::vector<int>> rank_cores(const Topology& topology, int ranks);

// Error: what the user asks for is not there: cores that the machine lacks, fewer of them named
// than there are ranks, or more threads than the free cores may carry. That there is no free core
// at all is none.
Result<bool> fits(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks);

// What is there, in words: "cores 0 to 7, ranks on 0 to 5, free 6 to 7".
std::string picture(const Topology& topology, const NodeRanks& ranks);

// The core for the thread of `local_rank`; -1: where the rank itself runs (bind).
Result<int> place(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks,
                  int local_rank);

}  // namespace weft
