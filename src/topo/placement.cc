// One function per policy; all pure.
#include "topo/placement.h"

#include <algorithm>

namespace weft {
namespace {

constexpr int kBesideRank = -1;

std::vector<int> cores_of_numa_node(const Topology& topology, int node) {
  std::vector<int> cores;
  for (int core = 0; core < topology.cores(); ++core)
    if (topology.numa_of_core[static_cast<std::size_t>(core)] == node) cores.push_back(core);
  return cores;
}

bool carries_rank(const NodeRanks& ranks, int core) {
  return std::find(ranks.core_of_rank.begin(), ranks.core_of_rank.end(), core) !=
         ranks.core_of_rank.end();
}

int place_numa(const Topology& topology, const NodeRanks& ranks, int local_rank) {
  const int task_core = ranks.core_of_rank[static_cast<std::size_t>(local_rank)];
  if (task_core < 0 || task_core >= topology.cores()) return kBesideRank;
  const auto cores =
      cores_of_numa_node(topology, topology.numa_of_core[static_cast<std::size_t>(task_core)]);
  const auto tasks = std::count_if(cores.begin(), cores.end(),
                                   [&](int core) { return carries_rank(ranks, core); });
  const auto own = std::find(cores.begin(), cores.end(), task_core) - cores.begin();
  const int position =
      numa_position(static_cast<int>(cores.size()), static_cast<int>(tasks), static_cast<int>(own));
  return cores[static_cast<std::size_t>(position)];
}

// K threads on one core: threads of consecutive ranks share the cores that carry no rank.
Result<int> place_pack(int threads_per_core, const Topology& topology, const NodeRanks& ranks,
                       int local_rank) {
  std::vector<int> free_cores;
  for (int core = 0; core < topology.cores(); ++core)
    if (topology.numa_of_core[static_cast<std::size_t>(core)] >= 0 && !carries_rank(ranks, core))
      free_cores.push_back(core);
  const auto threads = static_cast<int>(ranks.core_of_rank.size());
  const int needed = (threads + threads_per_core - 1) / threads_per_core;
  if (static_cast<int>(free_cores.size()) < needed)
    return Error{"placement pack:" + std::to_string(threads_per_core) + " needs " +
                 std::to_string(needed) + " cores without a rank for " + std::to_string(threads) +
                 " ranks, and " + std::to_string(free_cores.size()) +
                 " are free: start fewer ranks per node or pack more threads on a core"};
  return free_cores[static_cast<std::size_t>(local_rank / threads_per_core)];
}

}  // namespace

int numa_position(int cores, int tasks, int task_core) {
  if (tasks >= cores) return task_core;
  // δ = cores / (cores − tasks): ⌈(⌊M/δ⌋ + 1)·δ⌉ − 1 over whole numbers.
  const int idle = cores - tasks;
  const int block = task_core * idle / cores + 1;
  return (block * cores + idle - 1) / idle - 1;
}

Result<int> place(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks,
                  int local_rank) {
  switch (policy.kind) {
    case PlacementPolicy::Kind::bind:
      return kBesideRank;
    case PlacementPolicy::Kind::numa:
      return place_numa(topology, ranks, local_rank);
    case PlacementPolicy::Kind::pack:
      return place_pack(policy.threads_per_core, topology, ranks, local_rank);
    case PlacementPolicy::Kind::list:
      return policy.cores[static_cast<std::size_t>(local_rank) % policy.cores.size()];
  }
  return kBesideRank;
}

}  // namespace weft
