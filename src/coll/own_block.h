// Adds the step that copies a rank's own block, for collectives in which each rank gets a block
// from every rank.
#pragma once

#include "schedule/builder.h"

namespace weft {

// Copies the rank's own block to its place in the receive buffer, unless the call is in place. The
// copy only reads the outgoing data, so these may be sent in the same round.
inline void copy_own_block(Builder& b) {
  const Shape& s = b.shape();
  if (!s.in_place) b.copy(outgoing(s, s.rank), incoming(s, s.rank));
}

}  // namespace weft
