// Functions that the generated wrappers call after the MPI library has made an object.
#pragma once

#include <mpi.h>

namespace weft::interpose {

// Registers a new communicator, after the library's call has returned `code`. On success new_comm
// is the new communicator, a null handle on ranks that are not members.
void communicator_created(MPI_Comm* new_comm, int code);

}  // namespace weft::interpose
