// Writes the file that `weft run --trace` names: the events of all ranks.
#pragma once

#include <mpi.h>

#include <string>

#include "trace/trace.h"

namespace weft {

// Writes the events of all ranks to the file at `path`. Collective over `all`; rank 0 writes.
void write_trace(const Trace& trace, const std::string& path, MPI_Comm all, int rank, int ranks);

}  // namespace weft
