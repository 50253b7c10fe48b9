// Says whether the remaining ranks continue after one has failed (ULFM), as configured in the MPI
// library.
#pragma once

#include <mpi.h>

namespace weft {

// Must be called before the library's initialisation. Reads the launcher's setting from the
// environment.
bool is_to_continue_after_failures();

// May be called at any time after the library's initialisation.
bool continues_after_failures();

// Returns whether no rank of `comm` has failed. It is collective over the remaining ranks and
// returns the same on all. Use it only in jobs that continue after failures.
bool all_are_left(MPI_Comm comm);

}  // namespace weft
