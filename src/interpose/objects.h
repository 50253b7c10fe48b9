// The generated wrappers tell of objects that the library has made.
#pragma once

#include <mpi.h>

namespace weft::interpose {

// Is called once the library has returned `code` and, if that is success, a new communicator, which
// is a null handle on ranks that are no members.
void communicator_created(MPI_Comm* new_comm, int code);

}  // namespace weft::interpose
