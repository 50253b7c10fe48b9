// Whether an operator is defined for a datatype.
// Why ask: Weft would find out in the middle of the collective, on some ranks only, and report it
// elsewhere than the library does.
#pragma once

#include <mpi.h>

namespace weft::interpose {

// False: the library refuses the pair, and shall say so itself.
bool operator_fits(MPI_Op op, MPI_Datatype type);

}  // namespace weft::interpose
