// Topology: facts about this machine, read by hwloc; decisions are placement.h's.
#pragma once

#include <vector>

#include "base/result.h"

namespace weft {

struct Topology {
  std::vector<int> numa_of_core;  // by logical CPU number; -1: no such CPU

  int cores() const { return static_cast<int>(numa_of_core.size()); }
};

// hwloc is opened here, at the first use, so that programs that need no placement do without it.
Result<Topology> read_topology();

// The logical CPU numbers that the calling thread may run on, ascending.
std::vector<int> allowed_cores();

}  // namespace weft
