// Registers functions that the MPI library calls while it finalises. The delete callbacks of
// MPI_COMM_SELF's attributes run first in MPI_Finalize, and may still use all of MPI (MPI-4.1,
// 11.2.4).
#pragma once

#include <mpi.h>

namespace weft {

// Registers a function that the library calls while it finalises; the function registered last is
// called first. Returns true if that succeeded, false if the library refuses.
bool call_in_finalize(MPI_Comm_delete_attr_function* callback);

}  // namespace weft
