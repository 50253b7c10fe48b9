// The job: what the ranks tell each other in MPI_Init and MPI_Finalize.
#pragma once

namespace weft::advise {

// Between MPI_Init and MPI_Finalize of a process that records.
bool job_running();
void job_begins();
// Rank 0 collects all ranks' records and writes the job's file.
void job_ends();

}  // namespace weft::advise
