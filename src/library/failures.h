// Says whether the remaining ranks continue after one has failed (ULFM), as configured in the MPI
// library.
#pragma once

#include <mpi.h>

namespace weft {

// Returns whether the job will continue after a rank has failed, according to the launcher's
// setting in the environment. Must be called before the MPI library's initialisation.
bool is_to_continue_after_failures();

// Returns whether the job continues after a rank has failed, according to the MPI library. May be
// called at any time after the library's initialisation.
bool continues_after_failures();

// Returns whether no rank of `comm` has failed. The call is collective over the remaining ranks,
// and the answer is equal on all of them. Must only be called in jobs that continue after failures.
bool all_are_left(MPI_Comm comm);

}  // namespace weft
