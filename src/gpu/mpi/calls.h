// Collectives by their plain names, so that Weft carries them out where it is preloaded.
#pragma once

#include <mpi.h>

namespace weft {
struct Call;
}

namespace weft::gpu {

int start_by_mpi(const Call& call, MPI_Request* request);
// The persistent form.
int prepare_by_mpi(const Call& call, MPI_Request* request);

}  // namespace weft::gpu
