// Prints a sentence at exit if the user requested a summary but the program never initialised MPI.
#pragma once

namespace weft::interpose {

// Notes that Weft has seen a call of MPI_Init in this process.
void mpi_has_begun();

}  // namespace weft::interpose
