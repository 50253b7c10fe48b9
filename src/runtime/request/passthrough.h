// Passthrough: whether a call for requests or for a short message may go to the library's function
// at once.
#pragma once

#include <mpi.h>

#include <atomic>

#include "runtime/job/epoch.h"
#include "runtime/job/runtime.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/requests.h"
#include "runtime/request/transfers.h"

namespace weft {

// Returns whether no request is followed. A runtime is active whenever calls may pass through on.
inline bool nothing_followed() {
  return !Requests::own().watching() && known_transfers.load(std::memory_order_relaxed) == 0;
}
// Returns whether Weft has nothing to do with a call for these requests: it has none, or has
// nothing under way and these are not its own.
[[gnu::always_inline]] inline bool only_library(const MPI_Request* requests, int count = 1) {
  constexpr int kMostLookedAt = 16;
  if (passthrough_epoch.load(std::memory_order_acquire) == 0) return false;
  if (!nothing_followed()) return false;
  if (Requests::own().existing() == 0 && !InlineCall::own().any()) return true;
  if (!requests || count > kMostLookedAt || !nothing_under_way() ||
      deferring.load(std::memory_order_relaxed) != 0)
    return false;
  for (int i = 0; i < count; ++i)
    if (Requests::may_be_ours(requests[i])) return false;
  return true;
}
// Returns whether Weft has nothing to do with a call that starts this message.
template <class Count>  // as the call has it: each conversion is an instruction
bool is_short(Count count, MPI_Datatype type) {
  const KnownTypes::Known& known = known_types.at(type);
  return known.type == type && count < known.least_count &&
         known_types.epoch == passthrough_epoch.load(std::memory_order_acquire);
}

}  // namespace weft
