// Agreement: what the ranks of a communicator tell each other by the MPI library before they do
// anything that rests on it. In forms of its calls that do not block: where ranks have asked for
// different levels of threads, MPICH's blocking ones hang.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/facts.h"

namespace weft {

// What ranks find out together in MPI_Init.
struct Start {
  bool some_keep_level;  // some rank keeps the level of threads that its application asked for, by
                         // keeps_level()
  bool all_keep_level;
  bool all_have_multiple;  // MPI_THREAD_MULTIPLE is granted to all
};

// The first exchange of a job, collective over MPI_COMM_WORLD; `own` as for a job of this rank
// alone. Where the facts differ it ends the process, on all ranks, and one of them says why.
Start agree_on_start(const Facts& facts, const Start& own);

// In its place where this rank refuses what it was told: ends the process on all ranks. One of them
// says why, once.
[[noreturn]] void end_job_refusing(const std::string& why);

// Collective over MPI_COMM_WORLD. Ends the process on all ranks if some rank has a reason; the
// first of these says it.
void end_job_if_refused(const std::string& why);

// Collective over `comm`, a communicator of the application's. What differs between its ranks, on
// its first rank in words, on the others in none; no value: nothing does.
std::optional<std::string> disagreement(MPI_Comm comm, const Facts& facts);

}  // namespace weft
