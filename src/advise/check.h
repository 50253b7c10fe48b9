// Watches the buffers of operations in flight, for `weft check`: send buffers must not be written,
// and receive buffers not be touched, between start and completion. Pages are guarded where that is
// possible (guard.h); a checksum shows the other writes to send buffers. All of this is off unless
// WEFT_ADVISE_CHECK is set. The functions need the recorder's lock.
#pragma once

#include <cstdint>

#include "advise/callers.h"
#include "advise/extents.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

// Returns the bytes of a collective on this rank.
InFlight in_flight(const Call& call, const Communicator& comm);
// Returns the elements, or nothing if there are gaps between them.
Bytes dense(const void* buffer, std::int64_t count, MPI_Datatype type);

void check_begins(const char* directory, int rank, int ranks);
// comm: its handle as a number; 0: not known.
void check_started(std::uint64_t request, const InFlight& memory, std::uint64_t comm, CallId call,
                   const Caller& caller);
void check_completed(std::uint64_t request, Called called);
// The communicator is about to be freed or disconnected there.
void check_communicator_ends(std::uint64_t comm, CallId call, const Caller& caller);
// The request was freed: its completion will not be seen.
void check_dropped(std::uint64_t request);
void check_ends();
}  // namespace weft::advise
