// Neighbors lists the neighbours of a rank in its communicator's topology, in the order in which
// neighbourhood collectives store their blocks (MPI-4.1, 8.6).
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

namespace weft {

struct Neighbors {
  std::vector<int> sources;  // ranks of the neighbours; -1 for MPI_PROC_NULL
  std::vector<int> destinations;
};

// Returns the neighbours of this rank. Returns nullopt if the communicator has no topology. Also
// returns nullopt if both neighbours in a dimension of a Cartesian topology are the same process,
// since then only the MPI library knows which block belongs to which direction.
std::optional<Neighbors> neighbors_of(MPI_Comm comm);

}  // namespace weft
