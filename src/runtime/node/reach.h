// Reach: the means by which this process accesses the memory of other processes on the node: shared
// memory, attachment (XPMEM), or copies by the kernel.
#pragma once

#include <memory>

#include "select/one_copy_rule.h"
#include "shm/one_copy.h"
#include "shm/process_memory.h"
#include "shm/shared_ranges.h"

namespace weft {

// Returns the table of memory that this process shares. It lives until the process ends.
SharedRanges& shared_ranges();
// Returns the memory that can be attached by XPMEM; nullptr if processes cannot attach each other's
// memory.
ProcessMemory* process_memory();
// Returns the means to copy by the kernel; nullptr if the kernel does not copy between processes.
OneCopy* one_copy();
// Returns the rule that determines for which collectives the kernel copies; equal on all ranks of
// the node.
const OneCopyRule& one_copy_rule();

// The means by which this process accesses other processes' memory. They are determined once, in
// MPI_Init, and kept until the process ends.
struct Reach {
  std::unique_ptr<ProcessMemory> processes;
  std::unique_ptr<OneCopy> copies;
  OneCopyRule rule;
};
Reach& own_reach();

}  // namespace weft
