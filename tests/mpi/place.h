// Place: where this process stands in a communicator: its rank, the other processes, its
// neighbours. The result of a collective follows from this and from each process's data. Processes
// are identified by their rank in MPI_COMM_WORLD, so that communicators can be compared.
#pragma once

#include <mpi.h>

#include <vector>

namespace conformance {

struct Place {
  explicit Place(MPI_Comm comm);

  int size() const { return static_cast<int>(members.size()); }
  int me() const { return members[rank]; }
  // Returns the processes whose data this process gets: its own group, or on an intercommunicator
  // the other group.
  const std::vector<int>& peers() const { return two_groups ? others : members; }
  // Returns whether this process is in the group that both groups call the first
  // (intercommunicators only).
  bool in_first_group() const;

  MPI_Comm comm;
  int rank = 0;
  bool two_groups = false, topology = false;
  std::vector<int> members, others;
  // Ranks in MPI_COMM_WORLD; MPI_PROC_NULL at the end of a line.
  std::vector<int> sources, destinations;
};

}  // namespace conformance
