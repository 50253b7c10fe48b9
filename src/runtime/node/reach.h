// Reach: the means by which this process reaches the memory of the node's other processes. They
// share memory, attach each other's (XPMEM), or the kernel copies.
#pragma once

#include <memory>

#include "select/one_copy_rule.h"
#include "shm/one_copy.h"
#include "shm/process_memory.h"
#include "shm/shared_ranges.h"

namespace weft {

// Returns all memory that this process shares, until its end.
SharedRanges& shared_ranges();
// Returns nullptr if processes cannot attach each other's memory.
ProcessMemory* process_memory();
// Returns nullptr if the kernel does not copy between them.
OneCopy* one_copy();
// Returns for which collectives it does; the same on all ranks of the node.
const OneCopyRule& one_copy_rule();

// Is found once, in MPI_Init, and kept to the end of the process.
struct Reach {
  std::unique_ptr<ProcessMemory> processes;
  std::unique_ptr<OneCopy> copies;
  OneCopyRule rule;
};
Reach& own_reach();

}  // namespace weft
