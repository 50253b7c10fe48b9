// Place: where this process stands in a communicator: its rank, the others, its neighbors.
// Why: what a collective must deliver follows from this and the numbers each process holds.
// Processes are named by their rank in MPI_COMM_WORLD, so that communicators can be compared.
#pragma once

#include <mpi.h>

#include <vector>

namespace conformance {

struct Place {
  explicit Place(MPI_Comm comm);

  int size() const { return static_cast<int>(members.size()); }
  int me() const { return members[rank]; }
  // Those whose data this process gets: its own group, or the other one of two.
  const std::vector<int>& peers() const { return two_groups ? others : members; }
  // Of two groups, the one that both call the first.
  bool in_first_group() const;

  MPI_Comm comm;
  int rank = 0;
  bool two_groups = false, topology = false;
  std::vector<int> members, others;
  std::vector<int> sources, destinations;  // world ranks; MPI_PROC_NULL at an open border
};

}  // namespace conformance
