// Implements the policies that choose cores for progress threads. Each policy is a pure function.
// Integer arithmetic replaces the fractions in the equations of the paper (placement.h).
#include "topo/placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace weft {
namespace {

constexpr int kBesideRank = -1;

int size_of(const std::vector<int>& cores) {
  return static_cast<int>(cores.size());
}

std::vector<int> in_numa_node(const Topology& topology, const std::vector<int>& cores, int node) {
  std::vector<int> found;
  std::copy_if(cores.begin(), cores.end(), std::back_inserter(found),
               [&](int core) { return topology.numa(core) == node; });
  return found;
}

std::vector<int> numa_nodes_of(const Topology& topology) {
  std::vector<int> nodes;
  for (const int core : topology.cores())
    if (nodes.empty() || nodes.back() != topology.numa(core)) nodes.push_back(topology.numa(core));
  return nodes;
}

// Returns the position of free core number `block` among `cores` cores of which `free` are free and
// evenly spread: ⌈(block + 1)·δ⌉ − 1 with δ = cores / free.
int free_position(int cores, int free, int block) {
  return ((block + 1) * cores + free - 1) / free - 1;
}

std::string count(int number, const char* of) {
  return std::to_string(number) + " " + of + (number == 1 ? "" : "s");
}

Error no_free_core(const char* policy, const NodeRanks& ranks) {
  return Error{std::string("placement ") + policy + " needs a core without a rank, and " +
               count(size_of(ranks.core_of_rank), "rank") +
               " leave none free: start fewer ranks per node"};
}

// Chooses a core by equation 1 of the paper (placement.h): the rank at position M of its NUMA
// node's cores gets free core number ⌊M/δ⌋ of that node, with δ = cores / free cores. If the node
// has no free core, the thread stays on its rank's core.
Result<int> place_numa(const Topology& topology, const NodeRanks& ranks, int local_rank) {
  const auto free = free_cores(topology, ranks);
  if (free.empty()) return no_free_core("numa", ranks);
  const int own = ranks.core_of_rank[static_cast<std::size_t>(local_rank)];
  if (own < 0)
    return Error{
        "placement numa needs ranks that are bound to cores: bind them, as with mpiexec -bind-to "
        "core"};
  const auto cores = in_numa_node(topology, topology.cores(), topology.numa(own));
  const auto near = in_numa_node(topology, free, topology.numa(own));
  if (near.empty()) return kBesideRank;
  const auto position = std::find(cores.begin(), cores.end(), own) - cores.begin();
  return near[static_cast<std::size_t>(position) * near.size() / cores.size()];
}

// Chooses a core by equation 2 of the paper (placement.h): neighbouring ranks get different free
// cores, so that one thread sends while the next one receives.
Result<int> place_odd_even(const Topology& topology, const NodeRanks& ranks, int local_rank) {
  const auto free = free_cores(topology, ranks);
  if (free.empty()) return no_free_core("odd-even", ranks);
  return free[static_cast<std::size_t>(local_rank) % free.size()];
}

Result<bool> list_fits(const std::vector<int>& named, const Topology& topology,
                       const NodeRanks& ranks) {
  if (named.size() < ranks.core_of_rank.size())
    return Error{"placement list names " + count(size_of(named), "core") + " for " +
                 count(size_of(ranks.core_of_rank), "rank") + " of a node: name one for each"};
  for (const int core : named)
    if (topology.cpus() > 0 && !topology.has(core))
      return Error{"placement list names core " + std::to_string(core) +
                   ", which this machine or its batch system does not give"};
  return true;
}

int cores_needed(int threads_per_core, const NodeRanks& ranks) {
  return (size_of(ranks.core_of_rank) + threads_per_core - 1) / threads_per_core;
}

Result<bool> pack_fits(int threads_per_core, const Topology& topology, const NodeRanks& ranks) {
  const int free = size_of(free_cores(topology, ranks));
  const int needed = cores_needed(threads_per_core, ranks);
  if (free == 0 || free >= needed) return true;
  return Error{"placement pack:" + std::to_string(threads_per_core) + " needs " +
               std::to_string(needed) + " cores without a rank for " +
               count(size_of(ranks.core_of_rank), "rank") + ", and " + std::to_string(free) +
               (free == 1 ? " is" : " are") +
               " free: start fewer ranks per node or pack more threads on a core"};
}

// Puts at most `threads_per_core` threads on each core without a rank, and uses no more cores than
// needed: threads of consecutive ranks share a core of their NUMA node. Then those of ranks whose
// NUMA node has no such core left, and of ranks that are not bound, share the cores with space.
// pack_fits() must hold.
std::vector<int> packed(int threads_per_core, const Topology& topology, const NodeRanks& ranks) {
  const auto free = free_cores(topology, ranks);
  std::vector<int> cores(ranks.core_of_rank.size(), kBesideRank);
  std::vector<int> space(free.size(), threads_per_core);
  int may_open = cores_needed(threads_per_core, ranks);
  const auto put = [&](std::size_t rank, auto suits) {
    for (std::size_t i = 0; i < free.size() && cores[rank] < 0; ++i) {
      const bool opens = space[i] == threads_per_core;
      if (space[i] == 0 || (opens && may_open == 0) || !suits(free[i])) continue;
      if (opens) --may_open;
      cores[rank] = free[i];
      --space[i];
    }
  };
  for (std::size_t rank = 0; rank < cores.size(); ++rank) {
    const int own = ranks.core_of_rank[rank];
    if (own >= 0) put(rank, [&](int core) { return topology.numa(core) == topology.numa(own); });
  }
  for (std::size_t rank = 0; rank < cores.size(); ++rank) put(rank, [](int) { return true; });
  return cores;
}

Result<int> place_pack(int threads_per_core, const Topology& topology, const NodeRanks& ranks,
                       int local_rank) {
  if (free_cores(topology, ranks).empty()) return no_free_core("pack", ranks);
  return packed(threads_per_core, topology, ranks)[static_cast<std::size_t>(local_rank)];
}

// Returns the cores as text, such as "0 to 5, 7"; "none" if there are no cores.
std::string in_words(std::vector<int> cores) {
  std::sort(cores.begin(), cores.end());
  std::string words;
  for (std::size_t i = 0, next = 0; i < cores.size(); i = next) {
    next = i + 1;
    while (next < cores.size() && cores[next] <= cores[next - 1] + 1) ++next;
    words += (words.empty() ? "" : ", ") + std::to_string(cores[i]);
    if (cores[next - 1] > cores[i]) words += " to " + std::to_string(cores[next - 1]);
  }
  return words.empty() ? "none" : words;
}

// Appends to `result` the cores for `ranks` ranks, chosen from `cores` so that the free cores lie
// evenly among them.
void spread(const std::vector<int>& cores, int ranks, std::vector<int>& result) {
  const int free = size_of(cores) - ranks;
  for (int position = 0, block = 0; position < size_of(cores); ++position) {
    const bool is_free = block < free && position == free_position(size_of(cores), free, block);
    if (is_free) ++block;
    if (!is_free) result.push_back(cores[static_cast<std::size_t>(position)]);
  }
}

}  // namespace

NodeRanks ranks_on(const Topology& topology, const std::vector<std::vector<int>>& cpus_of_rank) {
  NodeRanks result;
  const int all = size_of(topology.cores());
  for (const auto& cpus : cpus_of_rank) {
    std::vector<int> cores;
    for (const int cpu : cpus) {
      if (!topology.has(cpu)) continue;
      if (std::find(cores.begin(), cores.end(), topology.core(cpu)) == cores.end())
        cores.push_back(topology.core(cpu));
    }
    const bool is_bound = !cores.empty() && size_of(cores) < all;
    result.core_of_rank.push_back(is_bound ? cores.front() : -1);
    if (is_bound)
      result.further_cores.insert(result.further_cores.end(), cores.begin() + 1, cores.end());
  }
  return result;
}

bool share_cpus(const std::vector<std::vector<int>>& cpus_of_rank) {
  std::map<std::vector<int>, std::size_t> ranks_on;
  for (const auto& cpus : cpus_of_rank) ++ranks_on[cpus];
  return std::any_of(ranks_on.begin(), ranks_on.end(),
                     [](const auto& group) { return group.second > group.first.size(); });
}

std::vector<int> free_cores(const Topology& topology, const NodeRanks& ranks) {
  std::vector<bool> taken(static_cast<std::size_t>(topology.cpus()), false);
  for (const auto* cores : {&ranks.core_of_rank, &ranks.further_cores})
    for (const int core : *cores)
      if (topology.has(core)) taken[static_cast<std::size_t>(topology.core(core))] = true;
  std::vector<int> free;
  for (const int core : topology.cores())
    if (!taken[static_cast<std::size_t>(core)]) free.push_back(core);
  return free;
}

Result<std::vector<int>> rank_cores(const Topology& topology, int ranks) {
  const auto cores = topology.cores();
  const int all = size_of(cores);
  if (ranks > all)
    return Error{count(ranks, "rank") + " do not fit on " + count(all, "core") +
                 ", with one on each: start fewer"};
  std::vector<int> result;
  int seen = 0, given = 0;
  for (const int node : numa_nodes_of(topology)) {
    const auto here = in_numa_node(topology, cores, node);
    seen += size_of(here);
    const auto due = static_cast<int>(static_cast<std::int64_t>(ranks) * seen / all);
    spread(here, due - given, result);
    given = due;
  }
  return result;
}

Result<bool> fits(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks) {
  if (policy.kind == PlacementPolicy::Kind::list) return list_fits(policy.cores, topology, ranks);
  if (policy.kind == PlacementPolicy::Kind::pack)
    return pack_fits(policy.threads_per_core, topology, ranks);
  return true;
}

std::string picture(const Topology& topology, const NodeRanks& ranks) {
  std::vector<int> bound;
  for (const int core : ranks.core_of_rank)
    if (core >= 0) bound.push_back(core);
  const std::string where =
      bound.empty() ? "ranks bound to none of them" : "ranks on " + in_words(bound);
  return "cores " + in_words(topology.cores()) + ", " + where + ", free " +
         in_words(free_cores(topology, ranks));
}

Result<int> place(const PlacementPolicy& policy, const Topology& topology, const NodeRanks& ranks,
                  int local_rank) {
  if (const auto fitting = fits(policy, topology, ranks); !fitting) return fitting.error();
  switch (policy.kind) {
    case PlacementPolicy::Kind::bind:
      return kBesideRank;
    case PlacementPolicy::Kind::numa:
      return place_numa(topology, ranks, local_rank);
    case PlacementPolicy::Kind::odd_even:
      return place_odd_even(topology, ranks, local_rank);
    case PlacementPolicy::Kind::pack:
      return place_pack(policy.threads_per_core, topology, ranks, local_rank);
    case PlacementPolicy::Kind::list:
      return policy.cores[static_cast<std::size_t>(local_rank)];
  }
  return kBesideRank;
}

}  // namespace weft
