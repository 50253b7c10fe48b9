// The heaps that the processes of this node share with each other (SharedHeap), as this process
// sees them: its own, which MPI_Alloc_mem takes memory from, and with `weft run --shared-heap` the
// application's large allocations, too.
#pragma once

#include <mpi.h>

#include <vector>

#include "shm/shared_heap.h"

namespace weft::interpose {

// Collective over the ranks of this node, once. Each sees all others' heaps then, or none any.
void share_heaps(MPI_Comm here);

// This process's; nullptr where heaps are not shared.
SharedHeap* own_heap();
// Whether the given ranks of MPI_COMM_WORLD, this one among them, see each other's.
bool heaps_are_shared(const std::vector<int>& world_ranks);

}  // namespace weft::interpose
