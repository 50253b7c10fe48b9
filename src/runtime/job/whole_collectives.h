// Tells whether several of the library's blocking collectives may run at a time on several threads
// of a process, as the workers of engine `tcc` run them. Inside a node Intel MPI's collectives wait
// for other ranks in shared memory, and release the library's only lock too rarely. Two of them on
// two communicators, started in different orders on two ranks, hang on some processors. They do not
// hang if they use messages.
#pragma once

#include <mpi.h>

#include "select/selector.h"

namespace weft {

inline constexpr const char* kWhySeveralMayNotRun =
    "under Intel MPI blocking collectives on several threads can hang in shared memory; set "
    "I_MPI_COLL_INTRANODE=pt2pt to have tcc";

// Makes Intel MPI use messages inside a node, unless the user has chosen otherwise. Must be called
// before MPI_Init.
void let_several_run(Library library);

bool several_may_run(Library library);

// Returns the engine to use in place of `asked`: engine thread if `asked` is tcc and
// several_may_run() is false; otherwise `asked`. Rank 0 of `comm` reports a replacement once.
Engine possible_in_place_of(Engine asked, Library library, MPI_Comm comm);

}  // namespace weft
