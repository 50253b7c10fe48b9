// The memory of each other that the processes of this node can access: heaps (SharedHeap), from
// which MPI_Alloc_mem and, with `weft run --shared-heap`, the application's large allocations take
// memory; other memory that is shown, with XPMEM (ProcessMemory); and what the kernel copies
// (OneCopy).
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "base/config.h"
#include "select/plan_cache.h"
#include "shm/shared_heap.h"

namespace weft {

// Collective over the ranks of this node, once. Afterwards either each rank may have a heap that
// the others can access, or none may. Likewise each can attach the others' memory or none can, and
// the kernel copies for all or for none.
void share_memory_of_processes(MPI_Comm here, const Config& config, PlanCache& plans);
// Sets, if the ranks have common memory, a zeroed piece of it in which each rank publishes its
// heap. Without it no heap is shared.
std::int64_t bytes_for_heaps(int ranks);
void tell_of_heaps_in(std::shared_ptr<std::byte> memory);

// Returns this process's heap; nullptr if it has none.
SharedHeap* own_heap();
// Returns this process's heap after making it if necessary; nullptr if heaps are not shared or the
// system refuses.
SharedHeap* find_or_make_own_heap();
// Returns whether the given ranks of MPI_COMM_WORLD, including this one, can access each other's
// heaps.
bool heaps_are_shared(const std::vector<int>& world_ranks);

}  // namespace weft
