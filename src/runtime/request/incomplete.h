// Handles collectives that the application has not completed when it calls MPI_Finalize.
#pragma once

#include <string>

#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"

namespace weft {

// Progresses incomplete collectives for a while, since other ranks may wait for this rank, and
// names them in a sentence. Does not return if a thread stays inside the MPI library, which then
// cannot be finalised.
void settle_incomplete(Runtime& runtime, int rank);

// Waits until the threads of engine tcc have left the library, or none has made progress for a
// while.
void let_workers_end(Runtime& runtime);

// Waits until the communicator's worker is idle, that is, until the other ranks have begun the same
// collectives. Must be called before library collectives on an internal communicator that has a
// worker for engine auto.
void let_worker_end(Runtime& runtime, const Communicator& communicator);

// Progresses the operations under way on this communicator, which all ranks have begun, until they
// are complete or have stood still for a while. Must be called before a blocking collective of the
// library. Does nothing if threads progress the operations.
void finish_before_blocking(Runtime& runtime, MPI_Comm comm);

// Reports the reason and ends all ranks.
[[noreturn]] void abort_job(const std::string& why);

// Completes the comparisons of variants under way. The application has no request for them, so that
// it waits for none.
void finish_comparisons(Runtime& runtime);

}  // namespace weft
