// Tells whether the remaining ranks continue after a rank has failed (ULFM, user-level failure
// mitigation). This depends on the configuration of the MPI library.
#pragma once

#include <mpi.h>

namespace weft {

// Returns whether the job will continue after a rank has failed, according to the launcher's
// environment variables. Unlike continues_after_failures() it may be called before MPI_Init.
bool is_to_continue_after_failures();

// Returns whether the job continues after a rank has failed, according to the MPI library. It may
// be called at any time after MPI_Init.
bool continues_after_failures();

// Returns whether no rank of `comm` has failed. All living ranks of `comm` must call it, and all
// get the same answer. It must be called only if continues_after_failures() returns true.
bool all_are_left(MPI_Comm comm);

}  // namespace weft
