// Whether the library takes arguments that Weft has doubts of: an operator for a datatype, buffers
// that overlap.
// Why ask: Weft would find out in the middle of the collective, on some ranks only, and report it
// elsewhere than the library does; and to leave a call to a library that does not refuse it would
// part this rank from the others.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft {

// Of a call as a rank alone would make it, whose data may be moved. False: it refuses it.
bool library_accepts(const Call& call, bool blocking);

// False: the library refuses the pair, and shall say so itself.
bool operator_fits(MPI_Op op, MPI_Datatype type);

}  // namespace weft
