// Neighbors: the neighbours of a rank in its communicator's topology, in the order of the blocks of
// a neighborhood collective (MPI-4.1, 8.6).
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

namespace weft {

struct Neighbors {
  std::vector<int> sources;  // ranks of the neighbours; -1 stands for MPI_PROC_NULL
  std::vector<int> destinations;
};

// Returns the neighbours of this rank. Returns nullopt without a topology, or if both neighbours in
// a dimension of a Cartesian grid are the same process: then the library determines which block is
// which.
std::optional<Neighbors> neighbors_of(MPI_Comm comm);

}  // namespace weft
