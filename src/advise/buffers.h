// Finds out whether consecutive blocking calls use different buffers, so that they could be in
// progress at the same time.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

inline constexpr std::uint16_t kKept = 16;  // the number of latest calls that are compared

// Must be called once for each blocking call, with Recorder::lock() held. Returns how many of the
// calls directly before, at most kKept, could run concurrently with this one: neither call writes
// memory that the other uses.
std::uint16_t apart_from_those_before(const Call& call, const Communicator& comm);

}  // namespace weft::advise
