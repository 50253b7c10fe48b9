// Holds the means by which this process accesses memory of other processes on the node: shared
// memory, attached memory (XPMEM), and copies by the kernel.
#pragma once

#include <memory>

#include "select/one_copy_rule.h"
#include "shm/one_copy.h"
#include "shm/process_memory.h"
#include "shm/shared_ranges.h"

namespace weft {

// Returns the table of memory that this process shares with others. It exists until the process
// ends.
SharedRanges& shared_ranges();
// Returns the means to attach memory by XPMEM; nullptr if the processes of the node cannot do so.
ProcessMemory* process_memory();
// Returns the means to copy by the kernel; nullptr if the kernel does not copy between processes of
// the node.
OneCopy* one_copy();
// Returns the rule that says for which collectives the kernel copies. It is equal on all ranks of
// the node.
const OneCopyRule& one_copy_rule();

// The means by which this process accesses memory of other processes. They are determined in
// MPI_Init, and kept until the process ends.
struct Reach {
  std::unique_ptr<ProcessMemory> processes;
  std::unique_ptr<OneCopy> copies;
  OneCopyRule rule;
};
Reach& own_reach();

}  // namespace weft
