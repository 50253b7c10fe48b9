// Call: the normalised record of one intercepted collective call, as the application made it.
#pragma once

#include <mpi.h>

#include "schedule/collective.h"

namespace weft {

// Reductions, scan and bcast fill both sides with the same count, type and, for bcast, buffer.
struct Call {
  Kind kind = Kind::barrier;
  const void* sendbuf = nullptr;  // may be MPI_IN_PLACE
  void* recvbuf = nullptr;
  int sendcount = 0;
  MPI_Datatype sendtype{};
  int recvcount = 0;
  MPI_Datatype recvtype{};
  MPI_Op op{};
  int root = 0;
  MPI_Comm comm{};
};

}  // namespace weft
