// Prints a message at exit if the program has never initialised MPI, so that Weft had nothing to
// do.
#pragma once

namespace weft::interpose {

// Must be called when the application calls MPI_Init. No message about a missing MPI_Init is
// printed then.
void mpi_has_begun();

}  // namespace weft::interpose
