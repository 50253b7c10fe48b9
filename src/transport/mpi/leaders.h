// Leaders: a communicator with a rank of each node, in the order of the nodes, for collectives of
// the MPI library between nodes. All its ranks have equal node ranks. All must make the calls on it
// in one order, although operations reach them at different times; `turns` keeps that order.
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
