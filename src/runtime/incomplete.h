// Collectives that the application has not completed when it calls MPI_Finalize.
#pragma once

#include <string>

#include "runtime/runtime.h"

namespace weft {

// Brings them forward for a while, since other ranks may wait for this rank's part, and says which
// they are in one sentence. Does not return where a thread stays inside the MPI library, which
// cannot be finalised then.
void settle_incomplete(Runtime& runtime, int rank);

// Says why and ends all ranks.
[[noreturn]] void abort_job(const std::string& why);

// What the ranks of sites still tell each other comes to its end, since nobody else waits for it.
void finish_comparisons(Runtime& runtime);

}  // namespace weft
