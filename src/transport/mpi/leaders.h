// Leaders: a communicator of the ranks that lead for the same part of a collective, one on each
// node, in the order of the nodes, for collectives of the MPI library between them; and the turns
// in which operations call these. All ranks must call them in the same order, although operations
// reach them at different times.
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
