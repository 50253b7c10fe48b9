// Whole collectives: whether several of the library's blocking collectives may run at a time, on
// several threads of a process, as the workers of engine `tcc` run them.
// Inside a node Intel MPI's wait for other ranks in shared memory, and release the library's only
// lock too rarely. Two of them on two communicators, in another order on another rank, hang on some
// processors. By messages they do not.
#pragma once

#include <mpi.h>

#include "select/selector.h"

namespace weft {

inline constexpr const char* kWhySeveralMayNotRun =
    "under Intel MPI blocking collectives on several threads can hang in shared memory; set "
    "I_MPI_COLL_INTRANODE=pt2pt to have tcc";

// Must be called before MPI_Init: chooses messages, if the user has chosen nothing.
void let_several_run(Library library);

bool several_may_run(Library library);

// Returns the engine asked for; `thread` in place of tcc if that is impossible.
Engine possible_in_place_of(Engine asked, Library library, MPI_Comm comm);

}  // namespace weft
