// Where a summary was asked for and the program never began MPI, one sentence says so at its exit:
// else the user would wait for a summary and not know why there is none.
#pragma once

namespace weft::interpose {

// MPI_Init has been called in this process, and Weft has seen it.
void mpi_has_begun();

}  // namespace weft::interpose
