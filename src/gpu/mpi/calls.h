// Calls collectives by their plain names (MPI_...), so that Weft carries them out if it is
// preloaded.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft::gpu {

int start_by_mpi(const Call& call, MPI_Request* request);
// Initialises a persistent collective with the arguments of `call`. Returns the MPI error code.
int prepare_by_mpi(const Call& call, MPI_Request* request);

// Returns whether the MPI library has the functions with arguments of type MPI_Count.
bool has_large_counts();
// Returns the function for this collective whose counts are ints.
CallId with_ints(Kind kind);

}  // namespace weft::gpu
