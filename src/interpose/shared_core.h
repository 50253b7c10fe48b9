// The baton of the progress threads that a placement puts on one core (engine/baton.h).
#pragma once

#include <mpi.h>

#include <vector>

#include "engine/baton.h"

namespace weft::interpose {

// Collective over the ranks of this node. core_of_thread: by local rank; -1: beside its rank. A
// rank that cannot share memory with the others has a baton of its own, and is not called.
Baton baton_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread);

}  // namespace weft::interpose
