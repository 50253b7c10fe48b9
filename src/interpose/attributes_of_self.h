// The attributes that are set on MPI_COMM_SELF. Their delete callbacks may use all of MPI while
// MPI_Finalize begins (MPI-4.1, 11.2.4). MPICH and its derivatives call them where they no longer
// take locks, so that none of Weft's threads may call MPI meanwhile. Weft calls them before.
#pragma once

namespace weft::interpose {

// Deletes all of them, in the reverse of the order in which they were set, as MPI_Finalize does.
void delete_attributes_of_self();

}  // namespace weft::interpose
