// The first rank of a job, as launchers tell their processes before MPI starts.
#pragma once

namespace weft {

// This process's rank; nullptr: nothing says that it is one.
const char* launched_rank();

// True, too, where nothing says so.
bool is_first_rank();

}  // namespace weft
