// Leaders: a communicator with one rank of each node, in the order of the nodes, on which
// collectives of the MPI library are called. All its ranks have equal node ranks. They must make
// the calls in one order, although operations reach them at different times; `turns` keeps that
// order.
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
