// A communicator of Weft that contains this rank alone. It is made at the first use, by a local
// call that takes longer than most collectives.
#pragma once

#include <mpi.h>

namespace weft {

MPI_Comm self_communicator();  // returns the null handle if the library cannot make a communicator
void free_self_communicator();

}  // namespace weft
