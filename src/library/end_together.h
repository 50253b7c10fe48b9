// Ends a job with which Weft refuses to work, for instance because its ranks have different
// settings.
#pragma once

namespace weft {

// Ends the job. All ranks of MPI_COMM_WORLD must call this. It calls `finalize` (MPI_Finalize) and
// then ends this process with exit status `status`. All ranks of a node exit at the same instant,
// after all of them have returned from `finalize`. If ranks exited one by one, the launcher would
// kill the other ranks as soon as one has failed: ranks that are still in MPI_Finalize would leave
// files in /dev/shm, and the job's exit status would change. MPICH's launcher would also lose the
// status of a rank that exits after another one has exited without an error.
[[noreturn]] void end_together(int (*finalize)(), int status);

}  // namespace weft
