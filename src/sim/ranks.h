// Chooses the nodes and cores of all ranks and their threads, node by node and by Weft's placement
// rules (topo/placement.h).
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "sim/machine.h"

namespace weft::sim {

struct Places {
  // Each rank's node, its core and the core of its thread. Cores are numbered over all nodes.
  std::vector<int> node_of_rank, core_of_rank, thread_core_of_rank;
  // A remark of the placement about the first node; "" if it has none.
  std::string note;
};

// Returns the node of a rank. The ranks of a node are consecutive, and all nodes have equally many,
// or some have one more.
int node_of(int rank, int ranks, int nodes);
Result<Places> place_ranks(const Machine& machine, int ranks, int nodes,
                           const PlacementPolicy& policy);

}  // namespace weft::sim
