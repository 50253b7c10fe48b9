// The generated wrappers call these functions after the MPI library has made an object.
#pragma once

#include <mpi.h>

namespace weft::interpose {

// Is called once the library has returned `code` and, if that is success, a new communicator, which
// is a null handle on ranks that are no members.
void communicator_created(MPI_Comm* new_comm, int code);

}  // namespace weft::interpose
