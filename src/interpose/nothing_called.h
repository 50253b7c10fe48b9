// If a summary was asked for and the program never initialised MPI, a sentence at exit says why
// there is none.
#pragma once

namespace weft::interpose {

// Notes that MPI_Init was called in this process and seen by Weft.
void mpi_has_begun();

}  // namespace weft::interpose
