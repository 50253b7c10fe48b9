// What the processes of this node see of each other's memory: their heaps (SharedHeap), which
// MPI_Alloc_mem takes memory from, and with `weft run --shared-heap` the application's large
// allocations, too; and with XPMEM whatever else they show (ProcessMemory).
#pragma once

#include <mpi.h>

#include <string_view>
#include <vector>

#include "shm/process_memory.h"
#include "shm/shared_heap.h"

namespace weft::interpose {

// Collective over the ranks of this node, once. Each sees all others' heaps then, or none any; if
// so, each can attach the others' memory, or none can. xpmem: as for Xpmem::open.
void share_memory_of_processes(MPI_Comm here, std::string_view xpmem);

// This process's; nullptr where heaps are not shared.
SharedHeap* own_heap();
// nullptr where processes cannot attach each other's memory.
ProcessMemory* process_memory();
// Whether the given ranks of MPI_COMM_WORLD, this one among them, see each other's.
bool heaps_are_shared(const std::vector<int>& world_ranks);

}  // namespace weft::interpose
