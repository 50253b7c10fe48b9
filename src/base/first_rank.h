// Launchers tell their processes these facts of the job before MPI starts.
#pragma once

namespace weft {

// This process's rank; nullptr: nothing says that it is one.
const char* launched_rank();

// 0: nothing says how many ranks the job has.
int launched_ranks();

// Returns true as well if no variable tells the rank.
bool is_first_rank();

}  // namespace weft
