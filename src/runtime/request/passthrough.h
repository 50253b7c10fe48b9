// Decides whether an MPI call with requests, or with a short message, may go directly to the MPI
// library.
#pragma once

#include <mpi.h>

#include <atomic>

#include "runtime/job/epoch.h"
#include "runtime/job/runtime.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/requests.h"
#include "runtime/request/transfers.h"

namespace weft {

// Returns whether Weft tracks no request of the MPI library: neither a non-blocking collective (for
// the summary, the trace or learning), nor a large message. The runtime must be active.
inline bool nothing_followed() {
  return !Requests::own().watching() && known_transfers.load(std::memory_order_relaxed) == 0;
}
// Returns whether a call with these requests may go to the MPI library alone. It may if the
// application has no requests of Weft's, or if no collective of Weft's is active and none of these
// requests is Weft's.
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
// Returns whether a message is so short that Weft need not see its start.
template <class Count>  // type of the count, since a conversion costs an instruction
bool is_short(Count count, MPI_Datatype type) {
  const KnownTypes::Known& known = known_types.at(type);
  return known.type == type && count < known.least_count &&
         known_types.epoch == passthrough_epoch.load(std::memory_order_acquire);
}

}  // namespace weft
