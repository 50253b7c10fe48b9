// Leaders: a communicator of the ranks that lead for the same part of a collective, one on each
// node and in the order of the nodes, for collectives of the MPI library's between them; and the
// turns in which operations call these. Why turns: all ranks must call in the same order, but
// operations get there at different times on different ranks.
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
