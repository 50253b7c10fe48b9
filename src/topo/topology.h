// Topology: facts about this machine, read by hwloc. Decisions are made in placement.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weft {

// The CPUs of a machine, by the numbers that the kernel uses. Several CPUs (hyper-threads) may form
// one core, which is identified by the lowest of them.
struct Topology {
  std::vector<int> numa_of_cpu;  // NUMA node of each CPU; -1 if there is no such CPU or this
                                 // process may not use it
  std::vector<int> core_of_cpu;  // the CPU that identifies the core of each CPU

  int cpus() const { return static_cast<int>(numa_of_cpu.size()); }
  bool has(int cpu) const {
    return cpu >= 0 && cpu < cpus() && numa_of_cpu[static_cast<std::size_t>(cpu)] >= 0;
  }
  int numa(int cpu) const { return numa_of_cpu[static_cast<std::size_t>(cpu)]; }
  int core(int cpu) const { return core_of_cpu[static_cast<std::size_t>(cpu)]; }

  std::vector<int> cores() const;  // returns the cores, ordered by NUMA node, then ascending
};

// Reads this machine. Opens hwloc at the first use, so that programs without placement do not need
// it.
Result<Topology> read_topology();

// Reads another machine: an XML file of hwloc, or a synthetic description such as "package:2 core:4
// pu:2".
Result<Topology> read_topology(const std::string& description);

// Returns a machine with one NUMA node, whose cores are the CPUs 0 to cores - 1.
Topology plain_topology(int cores);

// Returns hwloc's number of the NUMA domain that contains all these CPUs; kNoDomain if there is
// none, or if there are no CPUs.
inline constexpr int kNoDomain = -1;
int domain_of(const Topology& topology, const std::vector<int>& cpus);

// Returns this machine's topology if that may have several NUMA domains and this process is bound
// to a part of the CPUs; otherwise a topology without CPUs. Uses hwloc, which takes milliseconds,
// only if the kernel has several NUMA nodes or hwloc's own variables select another machine.
Topology topology_of_domains();

// Returns the logical CPU numbers on which the calling thread may run, ascending.
std::vector<int> allowed_cpus();

}  // namespace weft
