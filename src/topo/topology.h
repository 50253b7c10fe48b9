// Topology: facts about a machine's CPUs, cores and NUMA nodes, read by hwloc. Decisions are made
// in placement.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weft {

// The CPUs of a machine, numbered as by the kernel. Several CPUs (hyper-threads) may form one core,
// which is identified by the lowest of them.
struct Topology {
  // NUMA node of each CPU; -1 if the CPU does not exist or this process may not use it.
  std::vector<int> numa_of_cpu;
  std::vector<int> core_of_cpu;  // lowest CPU of the core to which each CPU belongs

  int cpus() const { return static_cast<int>(numa_of_cpu.size()); }
  bool has(int cpu) const {
    return cpu >= 0 && cpu < cpus() && numa_of_cpu[static_cast<std::size_t>(cpu)] >= 0;
  }
  int numa(int cpu) const { return numa_of_cpu[static_cast<std::size_t>(cpu)]; }
  int core(int cpu) const { return core_of_cpu[static_cast<std::size_t>(cpu)]; }

  std::vector<int> cores() const;  // cores, by NUMA node and then ascending
};

// Reads the topology of this machine. hwloc is opened at the first use, so that programs without
// placement do not need it. Returns an error if that fails.
Result<Topology> read_topology();

// Reads the topology of another machine from an XML file of hwloc, or from a synthetic description
// such as "package:2 core:4 pu:2".
Result<Topology> read_topology(const std::string& description);

// Returns a machine with one NUMA node and the cores 0, …, cores - 1, each of which is one CPU.
Topology plain_topology(int cores);

// Value of domain_of() for CPUs that lie in no single NUMA domain, or for no CPUs. Otherwise
// domain_of() returns hwloc's number of the domain that contains them all.
inline constexpr int kNoDomain = -1;
int domain_of(const Topology& topology, const std::vector<int>& cpus);

// Returns this machine's topology if it may have several NUMA domains and this process is bound to
// a part of the CPUs; otherwise a topology without CPUs. Calls hwloc, which takes milliseconds,
// only if the kernel has several NUMA nodes or hwloc's own variables select another machine.
Topology topology_of_domains();

// Returns the CPUs on which the calling thread may run, in ascending order.
std::vector<int> allowed_cpus();

}  // namespace weft
