// Builds the schedule of trivial reductions: those of a single rank, or of zero elements.
#pragma once

#include "schedule/builder.h"

namespace weft {

// Returns true if nothing is to be reduced, and the schedule is therefore complete: a single rank
// only copies, and zero elements need no steps. Otherwise returns false.
inline bool nothing_to_reduce(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) b.copy(b.input(), {Buffer::recv, 0}, s.recv.count);
  return s.size == 1 || s.recv.count == 0;
}

}  // namespace weft
