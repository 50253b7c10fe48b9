// Places the threads of a node's ranks by the user's placement policy.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "select/split_rule.h"
#include "topo/placement.h"

namespace weft {

// Returns the CPUs on which each rank of this node may run. Collective over `node`.
std::vector<std::vector<int>> gather_allowed_cpus(MPI_Comm node, int ranks);

struct NodePlacement {
  int local_rank = 0;
  NodeCores cores;
  std::vector<int> core_of_thread;  // core of each local rank's thread; -1 if the thread stays on
                                    // its rank's cores
  std::string misfit;  // reason why the policy does not fit this node; empty if it does
};

// Returns the cores of the threads of a node's ranks by this policy. Collective over the ranks of
// the node. The result is equal on all of them, except for local_rank. If the policy cannot be
// followed, the first rank reports the reason.
NodePlacement placement_on(MPI_Comm node, const PlacementPolicy& policy);

// Calls `use(node)`, in which `node` is a communicator of the ranks on this node. Collective over
// `comm`.
template <class Use>
void on_each_node(MPI_Comm comm, Use use) {
  MPI_Comm node;
  library_calls.Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, handles.info_null, &node);
  use(node);
  library_calls.Comm_free(&node);
}

// Returns the core for a thread of this rank, by the policy and the ranks of `comm` on this node;
// -1 if the thread stays on its rank's cores. Collective over `comm`.
int core_for(const PlacementPolicy& policy, MPI_Comm comm);

}  // namespace weft
