// Registers functions that the MPI library calls during MPI_Finalize. They are delete callbacks of
// attributes of MPI_COMM_SELF, which run before anything is finalised and may still use all of MPI
// (MPI-4.1, 11.2.4).
#pragma once

#include <mpi.h>

namespace weft {

// Registers a function that the MPI library calls at the beginning of MPI_Finalize. The function
// that was registered last is called first. Returns false if the MPI library refuses.
bool call_in_finalize(MPI_Comm_delete_attr_function* callback);

}  // namespace weft
