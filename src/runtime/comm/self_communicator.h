// Provides a communicator of Weft's own that contains only this rank. It is made when it is first
// needed, by a call that is local but takes longer than most collectives.
#pragma once

#include <mpi.h>

namespace weft {

// Returns the communicator; the null handle if the MPI library cannot make it.
MPI_Comm self_communicator();
void free_self_communicator();

}  // namespace weft
