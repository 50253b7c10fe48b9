// Watches the buffers of non-blocking operations in flight, for `weft check`. Between the start of
// an operation and its completion, the program must not write the send buffer, and must not access
// the receive buffer. The buffers' pages are protected if possible (guard.h); otherwise a checksum
// detects a changed send buffer. Nothing is watched unless WEFT_ADVISE_CHECK is set.
// Recorder::lock() must be held when these functions are called.
#pragma once

#include <cstdint>

#include "advise/callers.h"
#include "advise/extents.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

void check_begins(const char* directory, int rank, int ranks);
// Begins to watch the buffers of the operation that an MPI call has started. request: the
// operation's handle as a number. memory: its buffers. comm: the communicator's handle as a number;
// 0 if unknown. call: the MPI function.
void check_started(std::uint64_t request, const InFlight& memory, std::uint64_t comm, CallId call,
                   const Caller& caller);
// Notes that the application is about to pass a request to a call that completes requests. Until
// check_completed() or check_incomplete() is called, nothing is reported about the request's
// operation, since the MPI call may fail or be left by longjmp().
void check_asked(std::uint64_t request);
void check_incomplete(std::uint64_t request);
void check_completed(std::uint64_t request, Called called);
// Reports operations that are still in flight on a communicator. It must be called before the MPI
// function `call` frees or disconnects that communicator.
void check_communicator_ends(std::uint64_t comm, CallId call, const Caller& caller);
// Stops watching an operation. It must be called when the application frees the operation's
// request, since its completion cannot be seen after that.
void check_dropped(std::uint64_t request);
void check_ends();
}  // namespace weft::advise
