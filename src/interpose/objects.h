// Declares functions that the generated wrappers call after the MPI library has created an object.
#pragma once

#include <mpi.h>

namespace weft::interpose {

// Registers a new communicator with Weft. It must be called after the MPI library's call has
// returned `code`. new_comm: the new communicator; MPI_COMM_NULL on ranks that are not members.
void communicator_created(MPI_Comm* new_comm, int code);

}  // namespace weft::interpose
