// Deletes the attributes of MPI_COMM_SELF before MPI_Finalize would do so. Their delete callbacks
// may use all of MPI (MPI-4.1, 11.2.4). In MPICH and its derivatives MPI_Finalize calls them when
// the library no longer takes locks, so that Weft's threads must not call MPI at the same time.
// Weft therefore has them called earlier.
#pragma once

namespace weft::interpose {

// Deletes all attributes of MPI_COMM_SELF, the one that was set last first. MPI_Finalize uses the
// same order.
void delete_attributes_of_self();

}  // namespace weft::interpose
