// What the processes of this node see of each other's memory: their heaps (SharedHeap), which
// MPI_Alloc_mem takes memory from, and with `weft run --shared-heap` the application's large
// allocations, too; with XPMEM whatever else they show (ProcessMemory); and what the kernel copies
// between them (OneCopy).
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "base/config.h"
#include "select/one_copy_rule.h"
#include "select/plan_cache.h"
#include "shm/one_copy.h"
#include "shm/process_memory.h"
#include "shm/shared_heap.h"

namespace weft {

// Collective over the ranks of this node, once. Each may have a heap then that the others see, or
// none may; if so, each can attach the others' memory, or none can, and the same of the kernel's
// copies.
void share_memory_of_processes(MPI_Comm here, const Config& config, PlanCache& plans);
// Then, where the ranks have memory in common: a piece of it, all zero, in which each says where
// its heap is. Without it no heap is shared.
std::int64_t bytes_for_heaps(int ranks);
void tell_of_heaps_in(std::shared_ptr<std::byte> memory);

// This process's; nullptr where it has none.
SharedHeap* own_heap();
// The same for who wants memory of it; nullptr where heaps are not shared, or the system refuses.
SharedHeap* find_or_make_own_heap();
// nullptr where processes cannot attach each other's memory.
ProcessMemory* process_memory();
// nullptr where the kernel does not copy between them.
OneCopy* one_copy();
// For which collectives it does; the same on all ranks of the node.
const OneCopyRule& one_copy_rule();
// Whether the given ranks of MPI_COMM_WORLD, this one among them, see each other's.
bool heaps_are_shared(const std::vector<int>& world_ranks);

}  // namespace weft
