// Computes the number of segments into which a pipeline of ranks divides long data. It depends only
// on the bytes and the number of ranks, so all ranks get the same number.
#pragma once

#include <algorithm>

#include "schedule/collective.h"

namespace weft {

inline int segments(const Shape& shape) {
  constexpr std::int64_t kSmallest_bytes = 64 * 1024, kMost = 32;
  if (shape.size <= 2) return 1;
  return static_cast<int>(std::clamp<std::int64_t>(shape.recv.bytes() / kSmallest_bytes, 1, kMost));
}

}  // namespace weft
