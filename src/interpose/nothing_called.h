// Prints a message at exit if the program has never initialised MPI, so that Weft had nothing to
// do.
#pragma once

namespace weft::interpose {

// Notes that the application has called MPI_Init, so that no message about a missing MPI_Init is
// printed.
void mpi_has_begun();

}  // namespace weft::interpose
