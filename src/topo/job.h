// Job: what the launcher tells each process, before MPI starts, of the job it belongs to.
#pragma once

#include <functional>

namespace weft {

// The value of an environment variable; nullptr where it is not set.
using Variables = std::function<const char*(const char* name)>;

// All ranks of the job run on one node, in the words of its launcher: Hydra (all ranks are local
// ranks) or srun (the step has one node). False where neither says so. The same on all ranks.
bool on_one_node(const Variables& variables);

}  // namespace weft
