#include "transport/sim/model.h"

#include <algorithm>

namespace weft {

Layout SimType::layout(std::int64_t count) const {
  Layout result{
      .count = count, .size = 0, .extent = extent, .true_lb = 0, .true_extent = 0, .plain = false};
  std::int64_t low = segments.empty() ? 0 : segments[0].offset;
  std::int64_t high = low;
  for (const SimSegment& segment : segments) {
    result.size += segment.bytes;
    low = std::min(low, segment.offset);
    high = std::max(high, segment.offset + segment.bytes);
  }
  result.true_lb = low;
  result.true_extent = high - low;
  result.plain = segments.size() == 1 && low == 0 && result.size == extent;
  return result;
}

}  // namespace weft
