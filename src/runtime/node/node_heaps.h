// The memory of other processes on this node that a process can access. Heaps (SharedHeap) serve
// MPI_Alloc_mem and, with `weft run --shared-heap`, the application's large allocations. With XPMEM
// other memory can be attached (ProcessMemory). The kernel can copy any memory (OneCopy).
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "base/config.h"
#include "select/plan_cache.h"
#include "shm/shared_heap.h"

namespace weft {

// Makes the node's processes able to access each other's memory. Collective over the ranks of this
// node; is called once. Afterwards either every rank may have a heap that the others can access, or
// none may. Likewise either every rank can attach the others' memory or none can, and the kernel
// copies for all or for none.
void share_memory_of_processes(MPI_Comm here, const Config& config, PlanCache& plans);
// bytes_for_heaps(): the size of a table in which each rank publishes its heap. tell_of_heaps_in():
// sets that table, zeroed and shared by the ranks. Without it no heap is shared.
std::int64_t bytes_for_heaps(int ranks);
void tell_of_heaps_in(std::shared_ptr<std::byte> memory);

// Returns this process's heap; nullptr if it has none.
SharedHeap* own_heap();
// Returns this process's heap after creating it if necessary; nullptr if heaps are not shared or
// the system refuses.
SharedHeap* find_or_make_own_heap();
// Returns whether the given ranks of MPI_COMM_WORLD, including this one, can access each other's
// heaps.
bool heaps_are_shared(const std::vector<int>& world_ranks);

}  // namespace weft
