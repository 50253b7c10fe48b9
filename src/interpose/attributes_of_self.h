// Deletes the attributes of MPI_COMM_SELF before MPI_Finalize does. Their delete callbacks may use
// all of MPI while MPI_Finalize begins (MPI-4.1, 11.2.4). MPICH and its derivatives call them at a
// point where they no longer take locks, so that no thread of Weft may call MPI meanwhile.
// Therefore Weft calls them earlier.
#pragma once

namespace weft::interpose {

// Deletes all attributes of MPI_COMM_SELF, in the reverse of the order in which they were set, as
// MPI_Finalize does.
void delete_attributes_of_self();

}  // namespace weft::interpose
