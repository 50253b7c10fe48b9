// Writes the file of `weft run --trace`, which contains the events of all ranks.
#pragma once

#include <mpi.h>

#include <string>

#include "trace/trace.h"

namespace weft {

// Writes the events of all ranks to the file `path`. It is collective over `all`, a communicator of
// all ranks; rank 0 writes the file.
void write_trace(const Trace& trace, const std::string& path, MPI_Comm all, int rank, int ranks);

}  // namespace weft
