// Failures: tells whether ranks continue after another has failed (ULFM), as the library says.
#pragma once

#include <mpi.h>

namespace weft {

// Is called before the library's initialisation: reads the launcher's setting in the environment.
bool is_to_continue_after_failures();

// May be called right after the library's initialisation, or later.
bool continues_after_failures();

// Collective over the remaining ranks of `comm`, with one result for all of them. For jobs that
// continue after failures.
bool all_are_left(MPI_Comm comm);

}  // namespace weft
