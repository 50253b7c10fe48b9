// Finds out whether consecutive blocking calls use different buffers, and so could be in progress
// at the same time.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

inline constexpr std::uint16_t kKept = 16;  // calls of this rank's that are compared

// Must be called once for each blocking call, with the recorder's lock. Returns the number of calls
// right before it, at most kKept, with which it shares no memory that either of them writes.
std::uint16_t apart_from_those_before(const Call& call, const Communicator& comm);

}  // namespace weft::advise
