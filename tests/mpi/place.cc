// Finds out where this process stands in a communicator.
#include "place.h"

#include <algorithm>

namespace conformance {
namespace {

// Returns the ranks in MPI_COMM_WORLD of these ranks of the group. Frees the group.
std::vector<int> world_ranks(MPI_Group group, const std::vector<int>& ranks) {
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> result(ranks.size());
  MPI_Group_translate_ranks(group, static_cast<int>(ranks.size()), ranks.data(), world,
                            result.data());
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return result;
}

std::vector<int> first(int count) {
  std::vector<int> result(count);
  for (int i = 0; i < count; ++i) result[i] = i;
  return result;
}

void cartesian_neighbors(MPI_Comm comm, std::vector<int>* neighbors) {
  int dimensions = 0;
  MPI_Cartdim_get(comm, &dimensions);
  for (int i = 0; i < dimensions; ++i) {
    int below, above;
    MPI_Cart_shift(comm, i, 1, &below, &above);
    neighbors->insert(neighbors->end(), {below, above});
  }
}

void graph_neighbors(MPI_Comm comm, std::vector<int>* sources, std::vector<int>* destinations) {
  int in = 0, out = 0, weighted = 0;
  MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  sources->resize(in);
  destinations->resize(out);
  std::vector<int> in_weights(in + 1), out_weights(out + 1);
  MPI_Dist_graph_neighbors(comm, in, sources->data(), weighted ? in_weights.data() : MPI_UNWEIGHTED,
                           out, destinations->data(),
                           weighted ? out_weights.data() : MPI_UNWEIGHTED);
}

}  // namespace

Place::Place(MPI_Comm comm) : comm(comm) {
  int inter = 0, size = 0, kind = MPI_UNDEFINED;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Group group;
  MPI_Comm_group(comm, &group);
  members = world_ranks(group, first(size));
  MPI_Comm_test_inter(comm, &inter);
  two_groups = inter != 0;
  if (two_groups) {
    MPI_Comm_remote_size(comm, &size);
    MPI_Comm_remote_group(comm, &group);
    others = world_ranks(group, first(size));
    return;
  }
  MPI_Topo_test(comm, &kind);
  topology = kind == MPI_CART || kind == MPI_DIST_GRAPH;
  if (kind == MPI_CART) cartesian_neighbors(comm, &sources);
  if (kind == MPI_CART) destinations = sources;
  if (kind == MPI_DIST_GRAPH) graph_neighbors(comm, &sources, &destinations);
  for (auto* list : {&sources, &destinations}) {
    for (int& rank : *list) rank = rank == MPI_PROC_NULL ? rank : members[rank];
  }
}

bool Place::in_first_group() const {
  return *std::min_element(members.begin(), members.end()) <
         *std::min_element(others.begin(), others.end());
}

}  // namespace conformance
