// Carries out a whole collective by one call of the MPI library (generated/library_steps.cc).
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft {

// Make the collective call `call` on the communicator `comm` instead of its own, blocking or
// non-blocking. Return an MPI error code.
int library_blocking(const Call& call, MPI_Comm comm);
int library_nonblocking(const Call& call, MPI_Comm comm, MPI_Request* request);

}  // namespace weft
