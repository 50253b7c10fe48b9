// Watches the buffers of operations in flight, for `weft check`. Between start and completion send
// buffers must not be written, and receive buffers not be accessed. Pages are guarded if possible
// (guard.h); otherwise a checksum detects writes to send buffers. All of this is off unless
// WEFT_ADVISE_CHECK is set. The functions need the recorder's lock.
#pragma once

#include <cstdint>

#include "advise/callers.h"
#include "advise/extents.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

void check_begins(const char* directory, int rank, int ranks);
// Begins to watch the buffers of the operation that `call` has started. comm: the communicator's
// handle as a number; 0 if it is not known.
void check_started(std::uint64_t request, const InFlight& memory, std::uint64_t comm, CallId call,
                   const Caller& caller);
// A completing call is given the request. Until it says what became of the operation, nothing is
// told of that: the call may be left by a jump, or fail.
void check_asked(std::uint64_t request);
void check_incomplete(std::uint64_t request);
void check_completed(std::uint64_t request, Called called);
// Reports operations that are still in flight on a communicator. Must be called before `call` frees
// or disconnects that communicator.
void check_communicator_ends(std::uint64_t comm, CallId call, const Caller& caller);
// Stops watching an operation. Is called when its request has been freed, so that its completion
// will not be seen.
void check_dropped(std::uint64_t request);
void check_ends();
}  // namespace weft::advise
