// Collectives by their plain names, so that Weft carries them out where it is preloaded.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft::gpu {

int start_by_mpi(const Call& call, MPI_Request* request);
// The persistent form.
int prepare_by_mpi(const Call& call, MPI_Request* request);

// Whether the MPI library has calls with MPI_Count.
bool has_large_counts();
// The form of this kind whose counts are ints.
CallId with_ints(Kind kind);

}  // namespace weft::gpu
