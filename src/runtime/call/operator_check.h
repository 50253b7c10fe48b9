// Asks the MPI library whether it accepts doubtful arguments: an operator for a datatype, or
// overlapping buffers. Otherwise Weft would detect an error in the middle of the collective, on
// some ranks only, and report it elsewhere than the library does. Passing the call to the library
// without asking would separate this rank from the others if the library accepts it.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft {

// Returns whether the library accepts the call on a communicator of this rank alone. The call's
// data may be moved.
bool library_accepts(const Call& call, bool blocking);

// Returns whether the library accepts the operator for this type. If it does not, it has reported
// the error itself.
bool operator_fits(MPI_Op op, MPI_Datatype type);

}  // namespace weft
