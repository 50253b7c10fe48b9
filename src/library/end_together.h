// The end of a job that Weft refuses.
#pragma once

namespace weft {

// On all ranks of MPI_COMM_WORLD: finalises MPI by `finalize` and ends this process with `status`,
// once all ranks of its node have come out of MPI_Finalize, too.
// Why: launchers kill the other ranks as soon as one has ended with an error, and those that are
// still in MPI_Finalize leave their files in /dev/shm.
[[noreturn]] void end_together(int (*finalize)(), int status);

}  // namespace weft
