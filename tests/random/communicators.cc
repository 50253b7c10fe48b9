// Makes the communicators on which random programs run.
#include "communicators.h"

namespace random_programs {
namespace {

int rank_in_world() {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int world_size() {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

MPI_Comm split(int color, int key) {
  MPI_Comm made;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &made);
  return made;
}

// Returns a grid. It is not periodic where two neighbours would be the same process, since MPI
// libraries match the two edges differently.
MPI_Comm cartesian(int dimensions) {
  int sizes[2] = {0, 0}, periodic[2];
  MPI_Dims_create(world_size(), dimensions, sizes);
  for (int i = 0; i < 2; ++i) periodic[i] = sizes[i] > 2;
  MPI_Comm made;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes, periodic, 0, &made);
  return made;
}

MPI_Comm distributed(const std::vector<int>& sources, const std::vector<int>& destinations) {
  MPI_Comm made;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(),
                                 MPI_UNWEIGHTED, static_cast<int>(destinations.size()),
                                 destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  return made;
}

// Returns a graph in which each process has an edge to itself and two edges to the next process.
MPI_Comm repeated_edges() {
  const int rank = rank_in_world(), size = world_size();
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  return distributed({left, rank, left}, {right, right, rank});
}

// Returns a graph in which rank 0 sends to all others. They send to the last rank only, which sends
// to nobody.
MPI_Comm uneven_graph() {
  const int rank = rank_in_world(), last = world_size() - 1;
  std::vector<int> sources, destinations;
  if (rank > 0) sources.push_back(0);
  for (int other = 1; rank == 0 && other <= last; ++other) destinations.push_back(other);
  if (rank > 0 && rank < last) destinations.push_back(last);
  for (int other = last - 1; rank == last && other > 0; --other) sources.push_back(other);
  return distributed(sources, destinations);
}

MPI_Comm two_groups() {
  const int odd = rank_in_world() % 2;
  MPI_Comm mine = split(odd, 0), both;
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - odd, 4, &both);
  MPI_Comm_free(&mine);
  return both;
}

}  // namespace

Communicators::Communicators(bool world_itself) : places_(kComms) {
  const int rank = rank_in_world(), size = world_size();
  MPI_Comm copy = MPI_COMM_WORLD, second, alone;
  if (!world_itself) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  keep(world, copy);
  keep(duplicate, second);
  keep(reversed, split(0, -rank));
  keep(halves, split(rank % 2, rank));
  keep(all_but_last, split(size > 1 && rank == size - 1 ? MPI_UNDEFINED : 0, rank));
  keep(ring, cartesian(1));
  keep(grid, cartesian(2));
  keep(graph, repeated_edges());
  keep(uneven, uneven_graph());
  keep(self, alone);
  keep(groups, size > 1 ? two_groups() : MPI_COMM_NULL);
}

Communicators::~Communicators() {
  for (auto& place : places_) {
    if (place && place->comm != MPI_COMM_WORLD) MPI_Comm_free(&place->comm);
  }
}

void Communicators::keep(int comm, MPI_Comm made) {
  if (made != MPI_COMM_NULL) places_[comm] = std::make_unique<conformance::Place>(made);
}

}  // namespace random_programs
