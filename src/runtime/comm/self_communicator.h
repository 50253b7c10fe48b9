// A communicator of Weft's with this rank alone. It is made at the first use, by a local call that
// takes longer than most collectives.
#pragma once

#include <mpi.h>

namespace weft {

MPI_Comm self_communicator();  // the null handle where none can be had
void free_self_communicator();

}  // namespace weft
