// A whole collective as one call of the MPI library (generated/library_steps.cc).
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft {

// On `comm` in place of the call's own communicator. MPI error code.
int library_blocking(const Call& call, MPI_Comm comm);
int library_nonblocking(const Call& call, MPI_Comm comm, MPI_Request* request);

}  // namespace weft
