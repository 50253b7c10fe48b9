// Makes memory of the processes of a node accessible to each other. There are three ways. A heap in
// shared memory (SharedHeap) serves MPI_Alloc_mem and, with `weft run --shared-heap`, the
// application's large allocations. XPMEM attaches any memory of another process (ProcessMemory).
// The kernel copies from any memory of another process (OneCopy).
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "base/config.h"
#include "select/plan_cache.h"
#include "shm/shared_heap.h"

namespace weft {

// Finds out how the processes of this node can access each other's memory. It is collective over
// the ranks of the node, and must be called only once. The ranks agree: each way (heaps, XPMEM,
// copies by the kernel) is available to all of them or to none.
void share_memory_of_processes(MPI_Comm here, const Config& config, PlanCache& plans);
// bytes_for_heaps() returns the size of a table in which each rank publishes the name of its heap.
// tell_of_heaps_in() sets this table, which must be zeroed memory that the ranks share. Without it
// heaps are not shared.
std::int64_t bytes_for_heaps(int ranks);
void tell_of_heaps_in(std::shared_ptr<std::byte> memory);

// Returns the heap of this process; nullptr if it has none.
SharedHeap* own_heap();
// Returns the heap of this process, after creating it if necessary. Returns nullptr if heaps are
// not shared, or if the system refuses.
SharedHeap* find_or_make_own_heap();
// Returns whether these ranks of MPI_COMM_WORLD, which include this one, can access each other's
// heaps.
bool heaps_are_shared(const std::vector<int>& world_ranks);

}  // namespace weft
