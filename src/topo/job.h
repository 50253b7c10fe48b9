// Job: facts about the job that the launcher tells each process before MPI starts.
#pragma once

#include <functional>

namespace weft {

// A function that returns the value of an environment variable, or nullptr if it is not set.
using Variables = std::function<const char*(const char* name)>;

// Returns whether the launcher says that all ranks of the job run on one node: for Hydra and Open
// MPI's mpirun, that all ranks are local ranks; for srun, that the step has one node. Returns false
// if no launcher says so. The result is equal on all ranks.
bool on_one_node(const Variables& variables);

}  // namespace weft
