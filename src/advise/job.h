// Exchanges the advisor's data between the ranks, in MPI_Init and MPI_Finalize.
#pragma once

#include <mpi.h>

#include "advise/recorder.h"

namespace weft::advise {

// Returns whether the advisor records this process, and MPI is initialised and not yet finalised.
bool job_running();
void job_begins();
// Prepares the end of recording; it must be called before the MPI library's MPI_Finalize. Recording
// ends inside MPI_Finalize, after the application's delete callbacks of MPI_COMM_SELF, which may
// complete operations. The records of all ranks are then sent to rank 0, which writes the job's
// file.
void job_ends();

// Returns what the advisor knows about a communicator. The reference is valid until the
// communicator is freed.
Communicator& communicator(MPI_Comm comm);
// Records that `comm` was made from `parent`. duplicate: whether `comm` has the same members as
// `parent`; in this case it need not be usable yet, as after MPI_Comm_idup.
void note_communicator(MPI_Comm parent, MPI_Comm comm, bool duplicate);
void forget_communicator(MPI_Comm comm);

}  // namespace weft::advise
