// Finds out whether consecutive blocking calls use different buffers, and so could be in progress
// at the same time.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

inline constexpr std::uint16_t kKept = 16;  // number of this rank's latest calls that are compared

// Must be called once for each blocking call, with the recorder's lock. Returns how many of the
// directly preceding calls, at most kKept, share no memory with this one that either of them
// writes.
std::uint16_t apart_from_those_before(const Call& call, const Communicator& comm);

}  // namespace weft::advise
