// Reads this process's rank and the number of ranks from variables that job launchers set. This
// works before MPI_Init.
#pragma once

namespace weft {

// Returns this process's rank as text; nullptr if the launcher sets no variable with the rank.
const char* launched_rank();

// Returns the number of the job's ranks; 0 if the launcher sets no variable with it.
int launched_ranks();

// Returns true on rank 0, and also if the launcher sets no variable with the rank.
bool is_first_rank();

}  // namespace weft
