// Neighbors: the peers of a rank in its communicator's topology, in the order of the blocks of a
// neighborhood collective (MPI-4.1, 8.6).
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

namespace weft {

struct Neighbors {
  std::vector<int> sources;  // -1: MPI_PROC_NULL
  std::vector<int> destinations;
};

// Returns nothing without a topology, or if both neighbours in a dimension of a grid are one
// process: which of its blocks is which is then up to the library.
std::optional<Neighbors> neighbors_of(MPI_Comm comm);

}  // namespace weft
