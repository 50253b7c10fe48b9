// Carries out a whole collective by a single call of the MPI library (generated/library_steps.cc).
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft {

// Make the call on `comm` in place of the call's own communicator, and return an MPI error code.
int library_blocking(const Call& call, MPI_Comm comm);
int library_nonblocking(const Call& call, MPI_Comm comm, MPI_Request* request);

}  // namespace weft
