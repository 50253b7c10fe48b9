// Reduces several ranks' operands in rank order, for any operator.
#pragma once

#include "schedule/builder.h"

namespace weft {

// Computes into = at(0) op at(1) op … op at(ranks - 1). at(rank) adds a wait for that rank's
// operand if necessary, and returns where the operand lies. `into` may be the last rank's operand,
// but must overlap no other.
template <class At>
void reduce_in_order(Builder& b, int ranks, At at, Location into, std::int64_t count) {
  Location higher = at(ranks - 1);
  if (ranks == 1) b.copy(higher, into, count);
  for (int rank = ranks - 2; rank >= 0; --rank) {
    b.reduce(at(rank), higher, into, count);
    higher = into;
  }
}

}  // namespace weft
