// Topology: facts about this machine, read by hwloc; decisions are placement.h's.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weft {

// CPUs are what the kernel numbers and binds to. Several of them, hyper-threads, may be one core;
// the least of them stands for it.
struct Topology {
  std::vector<int> numa_of_cpu;  // -1: no such CPU, or none that this process may use
  std::vector<int> core_of_cpu;  // the CPU that stands for its core

  int cpus() const { return static_cast<int>(numa_of_cpu.size()); }
  bool has(int cpu) const {
    return cpu >= 0 && cpu < cpus() && numa_of_cpu[static_cast<std::size_t>(cpu)] >= 0;
  }
  int numa(int cpu) const { return numa_of_cpu[static_cast<std::size_t>(cpu)]; }
  int core(int cpu) const { return core_of_cpu[static_cast<std::size_t>(cpu)]; }

  std::vector<int> cores() const;  // in the order of NUMA nodes, and in each ascending
};

// hwloc is opened here, at the first use, so that programs that need no placement do without it.
Result<Topology> read_topology();

// Reads another machine: a file of hwloc's XML, or hwloc's own description, such as "package:2
// core:4 pu:2".
Result<Topology> read_topology(const std::string& description);

// Returns a machine of one NUMA node whose cores are CPUs 0 … cores - 1.
Topology plain_topology(int cores);

// Returns the NUMA domain that has all these CPUs, by hwloc's number; kNoDomain if there is none,
// or no CPUs.
inline constexpr int kNoDomain = -1;
int domain_of(const Topology& topology, const std::vector<int>& cpus);

// Returns the machine if this process is bound to some CPUs of one that may have several domains;
// else no CPUs. hwloc, which takes milliseconds, is used only if the kernel has several NUMA nodes,
// or if hwloc's own variables select another machine.
Topology topology_of_domains();

// Returns the logical CPU numbers on which the calling thread may run, ascending.
std::vector<int> allowed_cpus();

}  // namespace weft
