// Writes the file that `weft run --trace` names: the events of all ranks.
#pragma once

#include <mpi.h>

#include <string>

#include "trace/trace.h"

namespace weft {

// Collective over `all`; rank 0 writes the file.
void write_trace(const Trace& trace, const std::string& path, MPI_Comm all, int rank, int ranks);

}  // namespace weft
