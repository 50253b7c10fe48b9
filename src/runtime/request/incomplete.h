// Handles collectives that the application has not completed when it calls MPI_Finalize.
#pragma once

#include <string>

#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"

namespace weft {

// Progresses them for a while, since other ranks may wait for this rank, and names them in one
// sentence. Does not return if a thread stays inside the MPI library, which then cannot be
// finalised.
void settle_incomplete(Runtime& runtime, int rank);

// Waits until the threads of engine tcc are outside the library, or none has made progress for a
// while.
void let_workers_end(Runtime& runtime);

// Must be called before library collectives on an internal communicator with a worker of engine
// auto: waits until the worker is idle, that is, for the other ranks to have begun the same.
void let_worker_end(Runtime& runtime, const Communicator& communicator);

// Progresses the operations under way on this communicator, which all ranks have begun. Must be
// called before a blocking collective of the library's; does nothing if threads progress them.
void finish_before_blocking(Runtime& runtime, MPI_Comm comm);

// Says why and ends all ranks.
[[noreturn]] void abort_job(const std::string& why);

// Completes the comparisons under way, for which nobody else waits.
void finish_comparisons(Runtime& runtime);

}  // namespace weft
