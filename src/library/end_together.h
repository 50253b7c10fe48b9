// The end of a job that Weft refuses.
#pragma once

namespace weft {

// On all ranks of MPI_COMM_WORLD: finalises MPI by `finalize` and ends this process with `status`,
// once all ranks of its node have come out of MPI_Finalize, at one instant with them.
// Why: launchers kill the other ranks as soon as one has ended with an error. Those that are still
// in MPI_Finalize then leave their files in /dev/shm, and those that are killed change the status
// of the job. (MPICH's launcher loses the status of a rank that ends after one without an error.)
[[noreturn]] void end_together(int (*finalize)(), int status);

}  // namespace weft
