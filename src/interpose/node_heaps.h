// The heaps that the processes of this node share with each other (SharedHeap), as this process
// sees them: its own, which MPI_Alloc_mem takes memory from, and with `weft run --shared-heap` the
// application's large allocations, too.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "schedule/schedule.h"
#include "shm/shared_heap.h"
#include "transport/mpi/call.h"

namespace weft::interpose {

// Collective over the ranks of this node, once. Each sees all others' heaps then, or none any.
void share_heaps(MPI_Comm here);

// This process's; nullptr where heaps are not shared.
SharedHeap* own_heap();
// Where those of the given ranks of MPI_COMM_WORLD begin in this process; empty where heaps are not
// shared, or not all of these ranks are on this node.
std::vector<std::byte*> heaps_of(const std::vector<int>& world_ranks);

// What a direct schedule shows of this rank's buffers: whether and where they lie in its heap.
ShownBuffers shown_buffers(const Call& call, const Schedule& schedule);

}  // namespace weft::interpose
