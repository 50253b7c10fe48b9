// Tells whether the MPI library's blocking collectives may run on several threads of a process at
// the same time, as engine tcc needs. Under Intel MPI they may hang. Inside a node its collectives
// wait for other ranks in shared memory, and release the library's only lock too rarely. Two
// collectives on two communicators, which two ranks start in different orders, then hang on some
// processors. They do not hang if they use messages instead of shared memory.
#pragma once

#include <mpi.h>

#include "select/selector.h"

namespace weft {

inline constexpr const char* kWhySeveralMayNotRun =
    "under Intel MPI blocking collectives on several threads can hang in shared memory; set "
    "I_MPI_COLL_INTRANODE=pt2pt to have tcc";

// Makes Intel MPI use messages inside a node, unless the user has set the variable. It must be
// called before MPI_Init.
void let_several_run(Library library);

bool several_may_run(Library library);

// Returns the engine to use in place of `asked`. If `asked` is tcc and several_may_run() returns
// false, this is engine thread; otherwise it is `asked`. Rank 0 of `comm` reports the replacement
// once.
Engine possible_in_place_of(Engine asked, Library library, MPI_Comm comm);

}  // namespace weft
