// Failures: whether ranks go on after another has failed (ULFM), as the library tells.
#pragma once

#include <mpi.h>

namespace weft {

// Before the library's initialisation: as its launcher has set it in the environment.
bool is_to_go_on_after_failures();

// Right after the library's own initialisation, or later.
bool goes_on_after_failures();

// Collective over the ranks of `comm` that are left, and the same on all of them. In jobs that go
// on after failures.
bool all_are_left(MPI_Comm comm);

}  // namespace weft
