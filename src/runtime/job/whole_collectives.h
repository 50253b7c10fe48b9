// Whole collectives: whether several of the library's blocking ones may run at a time, on several
// threads of a process, as the workers of engine `tcc` run them.
// Why: Intel MPI's, inside a node, wait for the other ranks in shared memory and leave the
// library's one lock to other threads too seldom. Two that wait on two communicators, in another
// order on another rank, hang on some processors. By messages they do not.
#pragma once

#include "select/selector.h"

namespace weft {

inline constexpr const char* kWhySeveralMayNotRun =
    "under Intel MPI blocking collectives on several threads can hang in shared memory; set "
    "I_MPI_COLL_INTRANODE=pt2pt to have tcc";

// Before MPI_Init: chooses messages, where the user has chosen nothing.
void let_several_run(Library library);

bool several_may_run(Library library);

}  // namespace weft
