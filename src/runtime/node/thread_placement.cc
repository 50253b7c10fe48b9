// Chooses the cores of the progress threads of a node's ranks. If the policy cannot be followed,
// the threads stay on the cores of their ranks.
#include "runtime/node/thread_placement.h"

#include <sched.h>

#include <cstdint>

#include "base/log.h"
#include "topo/machine.h"
#include "topo/topology.h"

namespace weft {

std::vector<std::vector<int>> gather_allowed_cpus(MPI_Comm node, int ranks) {
  std::vector<std::uint8_t> mine(CPU_SETSIZE, 0);
  for (const int cpu : allowed_cpus()) mine[static_cast<std::size_t>(cpu)] = 1;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(ranks) * mine.size());
  library_calls.Allgather(mine.data(), CPU_SETSIZE, handles.byte, all.data(), CPU_SETSIZE,
                          handles.byte, node);
  std::vector<std::vector<int>> cpus(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i]) cpus[i / CPU_SETSIZE].push_back(static_cast<int>(i % CPU_SETSIZE));
  return cpus;
}

NodePlacement placement_on(MPI_Comm node, const PlacementPolicy& policy) {
  NodePlacement found;
  library_calls.Comm_rank(node, &found.local_rank);
  library_calls.Comm_size(node, &found.cores.ranks);
  const auto cpus_of_rank = gather_allowed_cpus(node, found.cores.ranks);
  found.core_of_thread.assign(cpus_of_rank.size(), -1);
  const auto give_up = [&](const std::string& why) {
    if (found.local_rank == 0) say(why);
    found.core_of_thread.assign(cpus_of_rank.size(), -1);
    return found;
  };
  const auto read = read_topology();
  if (!read && policy.kind != PlacementPolicy::Kind::list) return give_up(read.error().message);
  const Topology topology = read ? *read : Topology{};
  const NodeRanks ranks = ranks_on(topology, cpus_of_rank);
  if (const auto fitting = fits(policy, topology, ranks); !fitting) {
    found.misfit = fitting.error().message;
    if (read) found.misfit += " (" + picture(topology, ranks) + ")";
    return found;
  }
  for (int rank = 0; rank < found.cores.ranks; ++rank) {
    const auto core = place(policy, topology, ranks, rank);
    if (!core) return give_up(core.error().message + "; progress threads stay beside their ranks");
    found.core_of_thread[static_cast<std::size_t>(rank)] = *core;
  }
  found.cores.free = static_cast<int>(free_cores(topology, ranks).size());
  return found;
}

int core_for(const PlacementPolicy& policy, MPI_Comm comm) {
  if (policy.kind == PlacementPolicy::Kind::bind) return -1;
  int core = -1;
  on_each_node(comm, [&](MPI_Comm node) {
    const NodePlacement found = placement_on(node, policy);
    if (!found.misfit.empty() && found.local_rank == 0)
      say(found.misfit + "; the threads of this communicator stay beside their ranks");
    core = found.core_of_thread[static_cast<std::size_t>(found.local_rank)];
  });
  return core;
}

}  // namespace weft
