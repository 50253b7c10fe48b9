// Reads NUMA nodes and CPUs by hwloc, which is opened by dlopen() so that the preloaded library
// does not depend on it.
#include "topo/topology.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "topo/machine.h"

namespace weft {
namespace {

struct HwlocCalls {
  decltype(&::hwloc_topology_init) init;
  decltype(&::hwloc_topology_load) load;
  decltype(&::hwloc_topology_destroy) destroy;
  decltype(&::hwloc_get_type_depth) type_depth;
  decltype(&::hwloc_get_nbobjs_by_depth) count;
  decltype(&::hwloc_get_obj_by_depth) object;
  decltype(&::hwloc_bitmap_next) next_bit;
  decltype(&::hwloc_topology_set_xml) set_xml;
  decltype(&::hwloc_topology_set_synthetic) set_synthetic;
};

template <class Function>
bool bind(void* library, const std::string& prefix, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, (prefix + name).c_str()));
  return function != nullptr;
}

bool bind_all(void* library, const std::string& prefix, HwlocCalls& calls) {
  return bind(library, prefix, "topology_init", calls.init) &&
         bind(library, prefix, "topology_load", calls.load) &&
         bind(library, prefix, "topology_destroy", calls.destroy) &&
         bind(library, prefix, "get_type_depth", calls.type_depth) &&
         bind(library, prefix, "get_nbobjs_by_depth", calls.count) &&
         bind(library, prefix, "get_obj_by_depth", calls.object) &&
         bind(library, prefix, "bitmap_next", calls.next_bit) &&
         bind(library, prefix, "topology_set_xml", calls.set_xml) &&
         bind(library, prefix, "topology_set_synthetic", calls.set_synthetic);
}

// Opens hwloc: the copy that Weft's Python wheel installs beside Weft's libraries, whose functions
// have a prefix; if there is none, the system's.
Result<HwlocCalls> open_hwloc() {
  HwlocCalls calls;
  for (const char* path : {"$ORIGIN/libweft-hwloc.so", "$ORIGIN/../../lib/weft/libweft-hwloc.so"})
    if (void* own = dlopen(path, RTLD_NOW | RTLD_LOCAL))
      if (bind_all(own, "weft_hwloc_", calls)) return calls;
  void* library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error{
        "this placement needs hwloc (libhwloc.so.15): install it with "
        "'apt-get install libhwloc15', or use placement bind or list:"};
  if (bind_all(library, "hwloc_", calls)) return calls;
  return Error{"libhwloc.so.15 lacks a call that Weft needs; install hwloc 2"};
}

template <class Visit>
void for_each_cpu(const HwlocCalls& calls, hwloc_const_cpuset_t set, const Visit& visit) {
  for (int cpu = calls.next_bit(set, -1); cpu >= 0; cpu = calls.next_bit(set, cpu)) visit(cpu);
}

void add_numa_node(const HwlocCalls& calls, hwloc_obj_t node, Topology& topology) {
  for_each_cpu(calls, node->cpuset, [&](int cpu) {
    const auto index = static_cast<std::size_t>(cpu);
    for (auto at = topology.core_of_cpu.size(); at <= index; ++at) {
      topology.numa_of_cpu.push_back(-1);
      topology.core_of_cpu.push_back(static_cast<int>(at));
    }
    topology.numa_of_cpu[index] = static_cast<int>(node->logical_index);
  });
}

void add_core(const HwlocCalls& calls, hwloc_obj_t core, Topology& topology) {
  const int first = calls.next_bit(core->cpuset, -1);
  for_each_cpu(calls, core->cpuset, [&](int cpu) {
    if (topology.has(cpu)) topology.core_of_cpu[static_cast<std::size_t>(cpu)] = first;
  });
}

template <class Visit>
void for_each_object(const HwlocCalls& calls, hwloc_topology_t tree, hwloc_obj_type_t type,
                     const Visit& visit) {
  const int depth = calls.type_depth(tree, type);
  if (depth == HWLOC_TYPE_DEPTH_UNKNOWN) return;
  for (unsigned i = 0; i < calls.count(tree, depth); ++i) visit(calls.object(tree, depth, i));
}

// Reads the machine that choose() selects in hwloc: this one if it selects none.
template <class Choose>
Result<Topology> read_by(const HwlocCalls& calls, const Choose& choose) {
  hwloc_topology_t tree;
  if (calls.init(&tree) != 0) return Error{"hwloc_topology_init failed"};
  Topology topology;
  const bool is_chosen = choose(tree);
  if (is_chosen && calls.load(tree) == 0) {
    for_each_object(calls, tree, HWLOC_OBJ_NUMANODE,
                    [&](hwloc_obj_t node) { add_numa_node(calls, node, topology); });
    for_each_object(calls, tree, HWLOC_OBJ_CORE,
                    [&](hwloc_obj_t core) { add_core(calls, core, topology); });
  }
  calls.destroy(tree);
  return topology;
}

bool may_have_several_domains() {
  for (const char* variable : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"})
    if (std::getenv(variable)) return true;
  return numa_nodes().find_first_of("-,") != std::string::npos;
}

}  // namespace

std::vector<int> Topology::cores() const {
  std::vector<int> found;
  for (int cpu = 0; cpu < cpus(); ++cpu)
    if (has(cpu) && core(cpu) == cpu) found.push_back(cpu);
  std::stable_sort(found.begin(), found.end(), [&](int a, int b) { return numa(a) < numa(b); });
  return found;
}

Result<Topology> read_topology() {
  auto calls = open_hwloc();
  if (!calls) return calls.error();
  auto topology = read_by(*calls, [](hwloc_topology_t) { return true; });
  if (topology && topology->cpus() == 0) return Error{"hwloc found no NUMA node on this machine"};
  return topology;
}

Result<Topology> read_topology(const std::string& description) {
  auto calls = open_hwloc();
  if (!calls) return calls.error();
  const bool is_file = access(description.c_str(), R_OK) == 0;
  const auto topology = read_by(*calls, [&](hwloc_topology_t tree) {
    return (is_file ? calls->set_xml(tree, description.c_str())
                    : calls->set_synthetic(tree, description.c_str())) == 0;
  });
  if (topology && topology->cpus() > 0) return topology;
  return Error{"'" + description + "' is no machine that hwloc can read: name a file made by " +
               "'lstopo machine.xml', or describe one, such as 'package:2 core:4 pu:2'"};
}

Topology plain_topology(int cores) {
  Topology topology;
  for (int cpu = 0; cpu < cores; ++cpu) {
    topology.numa_of_cpu.push_back(0);
    topology.core_of_cpu.push_back(cpu);
  }
  return topology;
}

int domain_of(const Topology& topology, const std::vector<int>& cpus) {
  int domain = kNoDomain;
  for (const int cpu : cpus) {
    const int its = topology.has(cpu) ? topology.numa(cpu) : kNoDomain;
    if (its == kNoDomain || (domain != kNoDomain && its != domain)) return kNoDomain;
    domain = its;
  }
  return domain;
}

Topology topology_of_domains() {
  if (!may_have_several_domains()) return {};
  const auto cpus = static_cast<long>(allowed_cpus().size());
  const bool is_bound = cpus < sysconf(_SC_NPROCESSORS_ONLN);
  auto topology = is_bound ? read_topology() : Topology{};
  return topology ? std::move(*topology) : Topology{};
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace weft
