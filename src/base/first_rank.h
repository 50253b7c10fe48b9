// Reads rank and size from the environment that launchers set, before MPI starts.
#pragma once

namespace weft {

// Returns this process's rank; nullptr if no variable tells it.
const char* launched_rank();

// Returns the number of the job's ranks; 0 if no variable tells it.
int launched_ranks();

// Returns whether this is rank 0, or no variable tells the rank.
bool is_first_rank();

}  // namespace weft
