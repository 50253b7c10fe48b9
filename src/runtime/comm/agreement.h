// Lets the ranks of a communicator compare settings before they rely on each other. It uses the MPI
// library's non-blocking collectives, since MPICH's blocking ones hang if ranks have requested
// different thread levels.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/facts.h"

namespace weft {

// Holds what the ranks find out together in MPI_Init.
struct Start {
  bool some_keep_level;  // whether some rank keeps the thread level that its application requested
  bool all_keep_level;
  bool all_have_multiple;  // whether MPI_THREAD_MULTIPLE is available on all ranks
};

// Compares the settings of all ranks; collective over MPI_COMM_WORLD. own: what the result would be
// for a job of this rank alone. If the settings differ, ends the process on all ranks, and one rank
// prints the difference.
Start agree_on_start(const Facts& facts, const Start& own);

// Ends the process on all ranks; one rank prints `why`. A rank that refuses its options must call
// this instead of agree_on_start().
[[noreturn]] void end_job_refusing(const std::string& why);

// Ends the process on all ranks if any rank refuses the job; the lowest such rank prints its
// reason. It is collective over MPI_COMM_WORLD. why: this rank's reason; empty if it does not
// refuse.
void end_job_if_refused(const std::string& why);

// Compares settings between the ranks of a communicator of the application; collective over `comm`.
// Returns nullopt if they agree. If not, returns a description of the differences on rank 0, and an
// empty text on all other ranks.
std::optional<std::string> disagreement(MPI_Comm comm, const Facts& facts);

}  // namespace weft
