// Reads NUMA nodes and CPUs by hwloc, through dlopen: the preloaded library has no dependency.
#include "topo/topology.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

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
         bind(library, prefix, "bitmap_next", calls.next_bit);
}

// A wheel has an hwloc of its own beside Weft's libraries, under names that no other one has; else
// it is the system's.
Result<HwlocCalls> open_hwloc() {
  HwlocCalls calls;
  if (void* own = dlopen("$ORIGIN/libweft-hwloc.so", RTLD_NOW | RTLD_LOCAL))
    if (bind_all(own, "weft_hwloc_", calls)) return calls;
  void* library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error{
        "this placement needs hwloc (libhwloc.so.15): install it with "
        "'apt-get install libhwloc15', or use placement bind or list:"};
  if (bind_all(library, "hwloc_", calls)) return calls;
  return Error{"libhwloc.so.15 lacks a call that Weft needs; install hwloc 2"};
}

void add_numa_node(const HwlocCalls& calls, hwloc_obj_t node, Topology& topology) {
  for (int core = calls.next_bit(node->cpuset, -1); core >= 0;
       core = calls.next_bit(node->cpuset, core)) {
    const auto index = static_cast<std::size_t>(core);
    if (index >= topology.numa_of_core.size()) topology.numa_of_core.resize(index + 1, -1);
    topology.numa_of_core[index] = static_cast<int>(node->logical_index);
  }
}

bool may_have_several_domains() {
  for (const char* variable : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"})
    if (std::getenv(variable)) return true;
  return numa_nodes().find_first_of("-,") != std::string::npos;
}

}  // namespace

Result<Topology> read_topology() {
  auto calls = open_hwloc();
  if (!calls) return calls.error();
  hwloc_topology_t tree;
  if (calls->init(&tree) != 0) return Error{"hwloc_topology_init failed"};
  Topology topology;
  const bool loaded = calls->load(tree) == 0;
  if (loaded) {
    const int depth = calls->type_depth(tree, HWLOC_OBJ_NUMANODE);
    const auto nodes = calls->count(tree, depth);
    for (unsigned i = 0; i < nodes; ++i)
      add_numa_node(*calls, calls->object(tree, depth, i), topology);
  }
  calls->destroy(tree);
  if (topology.numa_of_core.empty()) return Error{"hwloc found no NUMA node on this machine"};
  return topology;
}

int domain_of(const Topology& topology, const std::vector<int>& cores) {
  int domain = kNoDomain;
  for (const int core : cores) {
    const int its =
        core < topology.cores() ? topology.numa_of_core[static_cast<std::size_t>(core)] : kNoDomain;
    if (its == kNoDomain || (domain != kNoDomain && its != domain)) return kNoDomain;
    domain = its;
  }
  return domain;
}

int domain_of_this_process() {
  const std::vector<int> cores = allowed_cores();
  const bool is_bound = static_cast<long>(cores.size()) < sysconf(_SC_NPROCESSORS_ONLN);
  if (!is_bound || !may_have_several_domains()) return kNoDomain;
  const auto topology = read_topology();
  return topology ? domain_of(*topology, cores) : kNoDomain;
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

}  // namespace weft
