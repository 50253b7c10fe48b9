// Leaders: a communicator with a rank of each node, in the order of the nodes, for collectives of
// the MPI library between nodes. All its ranks have the same node rank. The turns order the
// operations' calls on it: all ranks must make them in the same order, although operations reach
// them at different times.
#pragma once

#include <mpi.h>

#include "transport/turns.h"

namespace weft {

struct Leaders {
  explicit Leaders(MPI_Comm comm) : comm(comm) {}

  const MPI_Comm comm;
  Turns turns;
};

}  // namespace weft
