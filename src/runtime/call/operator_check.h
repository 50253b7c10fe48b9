// Asks whether the library accepts arguments that Weft doubts: an operator for a datatype,
// overlapping buffers. Otherwise Weft would find out in the middle of the collective, on some ranks
// only, and report it elsewhere than the library does; and leaving the call to a library that
// accepts it would separate this rank from the others.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"

namespace weft {

// Returns false if the library refuses the call as made by this rank alone; its data may be moved.
bool library_accepts(const Call& call, bool blocking);

// Returns false if the library refuses the pair, which it then reports itself.
bool operator_fits(MPI_Op op, MPI_Datatype type);

}  // namespace weft
