// Whether blocking collectives in a row use other buffers, so that they could be in flight
// together.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

inline constexpr std::uint16_t kKept = 16;  // calls of this rank's that are compared

// With the recorder's lock held, once for each blocking call: with so many calls right before it,
// at most kKept, this one shares no memory that either of them writes.
std::uint16_t apart_from_those_before(const Call& call, const Communicator& comm);

}  // namespace weft::advise
