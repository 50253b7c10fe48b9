// Calls collectives by their MPI_ names, so that Weft carries them out if it is preloaded.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft::gpu {

int start_by_mpi(const Call& call, MPI_Request* request);
// Initialises the persistent form of the collective. Returns the MPI error code.
int prepare_by_mpi(const Call& call, MPI_Request* request);

// Returns whether the MPI library has the functions with MPI_Count arguments.
bool has_large_counts();
// Returns the function with int counts for this kind.
CallId with_ints(Kind kind);

}  // namespace weft::gpu
