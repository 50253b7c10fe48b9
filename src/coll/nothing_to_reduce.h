// Builds the schedule of reductions that have nothing to reduce: those with a single rank, and
// those with zero elements.
#pragma once

#include "schedule/builder.h"

namespace weft {

// Returns whether there is nothing to reduce. If so, the schedule is already complete: a single
// rank only copies its input, and zero elements need no steps.
inline bool nothing_to_reduce(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) b.copy(b.input(), {Buffer::recv, 0}, s.recv.count);
  return s.size == 1 || s.recv.count == 0;
}

}  // namespace weft
