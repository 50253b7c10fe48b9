// Handles collectives that the application has not completed when it calls MPI_Finalize.
#pragma once

#include <string>

#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"

namespace weft {

// Advances incomplete collectives, since other ranks may wait for this rank. It stops after a while
// without progress. It prints a message that names the collectives. It aborts the job if a worker
// thread is still inside the MPI library, which then cannot be finalised.
void settle_incomplete(Runtime& runtime, int rank);

// Waits until the worker threads (engine tcc) have left the MPI library, or none has made progress
// for a while.
void let_workers_end(Runtime& runtime);

// Waits until the communicator's worker thread is idle, that is, until the other ranks have started
// the same collectives. It must be called before any other collective on an internal communicator
// with a worker.
void let_worker_end(Runtime& runtime, const Communicator& communicator);

// Advances this communicator's active collectives until they are complete, or have made no progress
// for a while. It must be called before a blocking collective of the MPI library. It does nothing
// if there are threads that advance collectives.
void finish_before_blocking(Runtime& runtime, MPI_Comm comm);

// Prints the reason, and aborts all ranks.
[[noreturn]] void abort_job(const std::string& why);

// Completes the unfinished exchanges in which ranks compare times for engine auto. The application
// has no requests for these exchanges, so it does not wait for them.
void finish_comparisons(Runtime& runtime);

}  // namespace weft
