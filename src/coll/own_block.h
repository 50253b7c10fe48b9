// The local part of a collective that gives a block to each rank: this rank's own block.
#pragma once

#include "schedule/builder.h"

namespace weft {

// Nothing to do in place. Reads what goes out only, so that it may be sent in the same round.
inline void copy_own_block(Builder& b) {
  const Shape& s = b.shape();
  if (!s.in_place) b.copy(outgoing(s, s.rank), incoming(s, s.rank));
}

}  // namespace weft
