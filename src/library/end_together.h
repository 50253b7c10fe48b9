// Ends a job that Weft refuses.
#pragma once

namespace weft {

// Ends a job. Must be called on all ranks of MPI_COMM_WORLD. It finalises MPI by `finalize` and
// ends this process with `status`. All ranks of a node end at the same instant, after all of them
// have returned from MPI_Finalize. Otherwise launchers would kill the other ranks as soon as one
// has ended with an error: ranks still in MPI_Finalize would leave files in /dev/shm, and killed
// ranks would change the job's exit status. (MPICH's launcher loses the status of a rank that ends
// after another one that ended without an error.)
[[noreturn]] void end_together(int (*finalize)(), int status);

}  // namespace weft
