// The job: what the ranks tell each other in MPI_Init and MPI_Finalize.
#pragma once

#include <mpi.h>

#include "advise/recorder.h"

namespace weft::advise {

// Between MPI_Init and MPI_Finalize of a process that records.
bool job_running();
void job_begins();
// Rank 0 collects all ranks' records and writes the job's file.
void job_ends();

// Returns the facts about a communicator; the reference is valid until it is freed.
Communicator& communicator(MPI_Comm comm);
// Notes that `comm` was made from this parent. duplicate: it has the parent's members; it need not
// be usable yet.
void note_communicator(MPI_Comm parent, MPI_Comm comm, bool duplicate);
void forget_communicator(MPI_Comm comm);

}  // namespace weft::advise
