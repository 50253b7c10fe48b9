// Asks the MPI library for the neighbours in the topology, once per communicator.
#include "runtime/comm/neighbors.h"

#include <algorithm>

#include "library/generated/library_calls.h"

namespace weft {
namespace {

std::optional<Neighbors> in_grid(MPI_Comm comm) {
  int dimensions = 0;
  library_calls.Cartdim_get(comm, &dimensions);
  const auto n = static_cast<std::size_t>(dimensions);
  std::vector<int> lengths(n), periods(n), coordinates(n);
  library_calls.Cart_get(comm, dimensions, lengths.data(), periods.data(), coordinates.data());
  Neighbors neighbors;
  for (std::size_t i = 0; i < n; ++i) {
    if (periods[i] && lengths[i] <= 2) return std::nullopt;
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    library_calls.Cart_shift(comm, static_cast<int>(i), 1, &below, &above);
    neighbors.sources.insert(neighbors.sources.end(), {below, above});
  }
  neighbors.destinations = neighbors.sources;
  return neighbors;
}

Neighbors in_graph(MPI_Comm comm) {
  int rank = 0, count = 0;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Graph_neighbors_count(comm, rank, &count);
  Neighbors neighbors;
  neighbors.sources.resize(static_cast<std::size_t>(count));
  library_calls.Graph_neighbors(comm, rank, count, neighbors.sources.data());
  neighbors.destinations = neighbors.sources;
  return neighbors;
}

Neighbors in_distributed_graph(MPI_Comm comm) {
  int sources = 0, destinations = 0, weighted = 0;
  library_calls.Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted);
  Neighbors neighbors;
  neighbors.sources.resize(static_cast<std::size_t>(sources));
  neighbors.destinations.resize(static_cast<std::size_t>(destinations));
  std::vector<int> source_weights(neighbors.sources.size() + 1);
  std::vector<int> destination_weights(neighbors.destinations.size() + 1);
  library_calls.Dist_graph_neighbors(comm, sources, neighbors.sources.data(), source_weights.data(),
                                     destinations, neighbors.destinations.data(),
                                     destination_weights.data());
  return neighbors;
}

std::optional<Neighbors> ask(MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  library_calls.Topo_test(comm, &topology);
  if (topology == MPI_CART) return in_grid(comm);
  if (topology == MPI_GRAPH) return in_graph(comm);
  if (topology == MPI_DIST_GRAPH) return in_distributed_graph(comm);
  return std::nullopt;
}

}  // namespace

std::optional<Neighbors> neighbors_of(MPI_Comm comm) {
  auto neighbors = ask(comm);
  if (!neighbors) return neighbors;
  for (auto* side : {&neighbors->sources, &neighbors->destinations})
    std::replace(side->begin(), side->end(), int{MPI_PROC_NULL}, -1);
  return neighbors;
}

}  // namespace weft
