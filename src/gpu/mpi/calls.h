// Calls collectives by their plain names, so that Weft carries them out where it is preloaded.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft::gpu {

int start_by_mpi(const Call& call, MPI_Request* request);
// Calls the persistent form.
int prepare_by_mpi(const Call& call, MPI_Request* request);

// Returns whether the MPI library has calls with MPI_Count.
bool has_large_counts();
// Returns the form of this kind with int counts.
CallId with_ints(Kind kind);

}  // namespace weft::gpu
