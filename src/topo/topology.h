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

// The NUMA domain that has all these cores, by hwloc's number; kNoDomain: none, or no cores.
inline constexpr int kNoDomain = -1;
int domain_of(const Topology& topology, const std::vector<int>& cores);

// That of the cores this process is bound to. hwloc, which takes milliseconds, is asked only where
// the kernel has several NUMA nodes, or hwloc's own variables put another machine in its place.
int domain_of_this_process();

// The logical CPU numbers that the calling thread may run on, ascending.
std::vector<int> allowed_cores();

}  // namespace weft
