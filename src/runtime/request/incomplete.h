// Collectives that the application has not completed when it calls MPI_Finalize.
#pragma once

#include <string>

#include "runtime/runtime.h"

namespace weft {

// Brings them forward for a while, since other ranks may wait for this rank's part, and says which
// they are in one sentence. Does not return where a thread stays inside the MPI library, which
// cannot be finalised then.
void settle_incomplete(Runtime& runtime, int rank);

// Until the threads of engine tcc are inside no call of the library's, or none has ended for a
// while.
void let_workers_end(Runtime& runtime);

// Callers alone go on, and one of them is about to block in a collective of the library's:
// brings forward what is under way on this communicator, which all ranks have begun before.
void finish_before_blocking(Runtime& runtime, MPI_Comm comm);

// Says why and ends all ranks.
[[noreturn]] void abort_job(const std::string& why);

// What the ranks of sites still tell each other comes to its end, since nobody else waits for it.
void finish_comparisons(Runtime& runtime);

}  // namespace weft
