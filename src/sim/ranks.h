// Determines the cores of all ranks and their threads, as the library's placement rules choose them
// node by node.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "sim/machine.h"

namespace weft::sim {

struct Places {
  // The node, the core and the thread's core of each rank; cores are numbered over all nodes.
  std::vector<int> node_of_rank, core_of_rank, thread_core_of_rank;
  std::string note;  // remark of the placement, of the first node that has one
};

// Returns a rank's node. Ranks are consecutive on each node, and distributed as evenly as possible.
int node_of(int rank, int ranks, int nodes);
Result<Places> place_ranks(const Machine& machine, int ranks, int nodes,
                           const PlacementPolicy& policy);

}  // namespace weft::sim
