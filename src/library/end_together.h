// The end of a job that Weft refuses.
#pragma once

namespace weft {

// Must be called on all ranks of MPI_COMM_WORLD: finalises MPI by `finalize` and ends this process
// with `status`, at the same instant as all ranks of its node, once these have returned from
// MPI_Finalize. Launchers kill the other ranks as soon as one has ended with an error. Ranks still
// in MPI_Finalize would leave files in /dev/shm, and killed ranks would change the status of the
// job. (MPICH's launcher loses the status of a rank that ends after one without an error.)
[[noreturn]] void end_together(int (*finalize)(), int status);

}  // namespace weft
