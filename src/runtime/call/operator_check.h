// Asks the MPI library whether it accepts doubtful arguments: an operator with a datatype, or
// overlapping buffers. If Weft did not ask, the error would appear in the middle of the collective,
// on some ranks only, and in another call than the MPI library's error. If Weft left such calls to
// the MPI library without asking, this rank would be in another collective than the others whenever
// the MPI library accepts the arguments.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft {

// Returns whether the MPI library accepts the call. It is made on a communicator that contains only
// this rank, and may change the call's output buffer.
bool library_accepts(const Call& call, bool blocking);

// Returns whether the MPI library accepts the operator for this datatype. If it does not, it has
// already called the error handler.
bool operator_fits(MPI_Op op, MPI_Datatype type);

}  // namespace weft
