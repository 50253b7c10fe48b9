// Job: facts about the job that the launcher tells each process before MPI starts.
#pragma once

#include <functional>

namespace weft {

// A function that returns the value of an environment variable; nullptr if it is not set.
using Variables = std::function<const char*(const char* name)>;

// Returns whether all ranks of the job run on one node according to its launcher: Hydra (all ranks
// are local ranks), Open MPI's mpirun (likewise), or srun (the step has one node). Returns false if
// none of them tells. The result is equal on all ranks.
bool on_one_node(const Variables& variables);

}  // namespace weft
