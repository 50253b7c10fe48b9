// Functions of Weft's that the MPI library calls while it finalises.
// Why: the delete callbacks of MPI_COMM_SELF's attributes run first in MPI_Finalize, and whatever
// MPI offers works in them (MPI-4.1, 11.2.4).
#pragma once

#include <mpi.h>

namespace weft {

// Registers a function that the library calls while it finalises: before those set earlier on
// MPI_COMM_SELF, and after those set later. Returns false if the library refuses.
bool call_in_finalize(MPI_Comm_delete_attr_function* callback);

}  // namespace weft
