// Exchanges data between the ranks in MPI_Init and MPI_Finalize.
#pragma once

#include <mpi.h>

#include "advise/recorder.h"

namespace weft::advise {

// Returns whether the process records and is between MPI_Init and MPI_Finalize.
bool job_running();
void job_begins();
// Must be called before the library's MPI_Finalize. The record ends in there, behind the
// application's callbacks of MPI_COMM_SELF, which may complete operations. Then all ranks' records
// are collected on rank 0, which writes the job's file.
void job_ends();

// Returns the facts about a communicator; the reference is valid until the communicator is freed.
Communicator& communicator(MPI_Comm comm);
// Records that `comm` was made from `parent`. duplicate: `comm` has the parent's members, and need
// not be usable yet.
void note_communicator(MPI_Comm parent, MPI_Comm comm, bool duplicate);
void forget_communicator(MPI_Comm comm);

}  // namespace weft::advise
