// Chooses the cores of the progress threads of a node's ranks, by the placement that the user has
// requested.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "select/split_rule.h"
#include "topo/placement.h"

namespace weft {

// Returns the CPUs on which each rank may run; collective over `node`, a communicator of this
// node's ranks. ranks: their number.
std::vector<std::vector<int>> gather_allowed_cpus(MPI_Comm node, int ranks);

struct NodePlacement {
  int local_rank = 0;
  NodeCores cores;
  // The core of each rank's thread, by node rank; -1 if the thread stays on the cores of its rank.
  std::vector<int> core_of_thread;
  std::string misfit;  // why the policy does not fit this node; empty if it does
};

// Returns the cores of the threads of this node's ranks, by the user's policy. It is collective
// over `node`, a communicator of these ranks. The result is equal on all of them, except for
// local_rank. If the policy cannot be followed, the node's first rank reports why.
NodePlacement placement_on(MPI_Comm node, const PlacementPolicy& policy);

// Calls use(node) on each node, with a communicator of the ranks on that node; collective over
// `comm`.
template <class Use>
void on_each_node(MPI_Comm comm, Use use) {
  MPI_Comm node;
  library_calls.Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, handles.info_null, &node);
  use(node);
  library_calls.Comm_free(&node);
}

// Returns the core for a thread of this rank, by the policy and the ranks of `comm` on this node.
// Returns -1 if the thread stays on the cores of its rank. It is collective over `comm`.
int core_for(const PlacementPolicy& policy, MPI_Comm comm);

}  // namespace weft
