// Chooses the cores of ranks and their threads. The choice for a node is used for all nodes with
// equally many ranks.
#include "sim/ranks.h"

#include <map>

#include "topo/placement.h"

namespace weft::sim {
namespace {

struct NodePlaces {
  std::vector<int> ranks, threads;
  std::string note;
};

Result<NodePlaces> place_node(const Machine& machine, int ranks, const PlacementPolicy& policy) {
  const Topology topology = machine.topology();
  auto cores = rank_cores(topology, ranks);
  if (!cores) return cores.error();
  NodePlaces places{*cores, {}, ""};
  const NodeRanks on{*cores, {}};
  if (const auto fitting = fits(policy, topology, on); !fitting)
    return Error{fitting.error().message + " (" + picture(topology, on) + ")"};
  for (int rank = 0; rank < ranks; ++rank) {
    const auto core = place(policy, topology, on, rank);
    if (!core) places.note = core.error().message + "; progress threads stay beside their ranks";
    const bool is_elsewhere = core && *core >= 0;
    places.threads.push_back(is_elsewhere ? *core : (*cores)[static_cast<std::size_t>(rank)]);
  }
  return places;
}

}  // namespace

int node_of(int rank, int ranks, int nodes) {
  return static_cast<int>(static_cast<std::int64_t>(rank) * nodes / ranks);
}

Result<Places> place_ranks(const Machine& machine, int ranks, int nodes,
                           const PlacementPolicy& policy) {
  Places places;
  std::map<int, NodePlaces> by_number;
  for (int first = 0, node = 0; node < nodes; ++node) {
    int last = first;
    while (last < ranks && node_of(last, ranks, nodes) == node) ++last;
    auto found = by_number.find(last - first);
    if (found == by_number.end()) {
      auto placed = place_node(machine, last - first, policy);
      if (!placed) return placed.error();
      found = by_number.emplace(last - first, std::move(*placed)).first;
    }
    const NodePlaces& here = found->second;
    if (places.note.empty()) places.note = here.note;
    for (std::size_t i = 0; i < here.ranks.size(); ++i) {
      places.node_of_rank.push_back(node);
      places.core_of_rank.push_back(node * machine.cores + here.ranks[i]);
      places.thread_core_of_rank.push_back(node * machine.cores + here.threads[i]);
    }
    first = last;
  }
  return places;
}

}  // namespace weft::sim
