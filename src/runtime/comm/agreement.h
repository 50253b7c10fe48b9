// Agreement: what the ranks of a communicator exchange by the MPI library before they rely on it.
// It uses non-blocking calls, since MPICH's blocking ones hang if ranks have asked for different
// thread levels.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/facts.h"

namespace weft {

// The facts that ranks find out together in MPI_Init.
struct Start {
  bool some_keep_level;  // some rank keeps the level of threads that its application asked for, by
                         // keeps_level()
  bool all_keep_level;
  bool all_have_multiple;  // MPI_THREAD_MULTIPLE is granted to all
};

// The first exchange of a job, collective over MPI_COMM_WORLD. `own` has the values for a job of
// this rank alone. If the facts differ it ends the process on all ranks, and one of them says why.
Start agree_on_start(const Facts& facts, const Start& own);

// Replaces agree_on_start() if this rank refuses its options: ends the process on all ranks, and
// one of them says why.
[[noreturn]] void end_job_refusing(const std::string& why);

// Collective over MPI_COMM_WORLD. Ends the process on all ranks if some rank has a reason; the
// first such rank says it.
void end_job_if_refused(const std::string& why);

// Collective over `comm`, a communicator of the application's. Returns nothing if its ranks agree;
// otherwise the difference in words on the first rank, and an empty text on the others.
std::optional<std::string> disagreement(MPI_Comm comm, const Facts& facts);

}  // namespace weft
