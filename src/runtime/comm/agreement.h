// Agreement: exchanges by the MPI library in which the ranks of a communicator agree on facts
// before they rely on them. It uses non-blocking calls, since MPICH's blocking ones hang if ranks
// have requested different thread levels.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/facts.h"

namespace weft {

// The facts that the ranks determine together in MPI_Init.
struct Start {
  bool some_keep_level;  // some rank keeps the thread level that its application requested
  bool all_keep_level;
  bool all_have_multiple;  // all ranks have been granted MPI_THREAD_MULTIPLE
};

// The first exchange of a job, collective over MPI_COMM_WORLD. own: the result for a job of this
// rank alone. If the facts differ, it ends the process on all ranks, and one of them reports the
// difference.
Start agree_on_start(const Facts& facts, const Start& own);

// Ends the process on all ranks, one of which reports `why`. Is called instead of agree_on_start()
// on a rank that refuses its options.
[[noreturn]] void end_job_refusing(const std::string& why);

// Ends the process on all ranks if some rank has a reason to refuse the job; the first such rank
// reports its reason. Collective over MPI_COMM_WORLD. why: this rank's reason; empty for none.
void end_job_if_refused(const std::string& why);

// Compares the facts of the ranks of `comm`, a communicator of the application; collective. Returns
// nullopt if they agree; otherwise a description of the difference on the first rank, and an empty
// text on the others.
std::optional<std::string> disagreement(MPI_Comm comm, const Facts& facts);

}  // namespace weft
