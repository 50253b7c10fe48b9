// Finds out whether consecutive blocking calls use different buffers, so that they could be in
// progress at the same time.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

inline constexpr std::uint16_t kKept = 16;  // the number of latest calls that are compared

// Returns how many of the blocking calls directly before this one, at most kKept, could run
// concurrently with it: neither call writes memory that the other uses. It must be called exactly
// once for each blocking call, with Recorder::lock() held.
std::uint16_t apart_from_those_before(const Call& call, const Communicator& comm);

}  // namespace weft::advise
