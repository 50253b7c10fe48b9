// Job: what the launcher tells each process about its job before MPI starts.
#pragma once

#include <functional>

namespace weft {

// Returns the value of an environment variable; nullptr if it is not set.
using Variables = std::function<const char*(const char* name)>;

// Returns whether all ranks of the job run on one node according to its launcher: Hydra (all ranks
// are local ranks) or srun (the step has one node). Returns false if neither tells. The result is
// equal on all ranks.
bool on_one_node(const Variables& variables);

}  // namespace weft
