// Placement: on which core the progress thread of each rank of a node runs.
// Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 4; JHPCN jh250041, Topic 1
// (several progress threads on one core).
#pragma once

#include <vector>

#include "base/config.h"
#include "topo/topology.h"

namespace weft {

// What the decision rests on; the same on all ranks of a node.
struct NodeRanks {
  std::vector<int> core_of_rank;  // by local rank; -1: the rank is not bound to one core
};

// Equation 1 of the paper, in exact arithmetic: position of the thread's core in a NUMA node of
// `cores` cores of which `tasks` carry ranks, for the rank on position `task_core`.
int numa_position(int cores, int tasks, int task_core);

// The core for the thread of `local_rank`; -1: where the rank itself runs (bind).
Result<int> place(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks,
                  int local_rank);

}  // namespace weft
