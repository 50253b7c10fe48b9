// Implements SegmentParts: maps parts of a segment, and finds the part that contains an address.
#include "shm/segment_parts.h"

#include <algorithm>

namespace weft {

std::byte* SegmentParts::map(int part) {
  if (std::byte* const there = at(part)) return there;
  const std::lock_guard lock(mutex_);
  if (std::byte* const there = at(part)) return there;
  std::byte* const made = segment_.map_part(begin_of(part), bytes_of(part));
  if (!made) return nullptr;
  const std::byte* const lowest = lowest_.load();
  lowest_.store(lowest ? std::min<const std::byte*>(lowest, made) : made);
  end_.store(std::max<const std::byte*>(end_.load(), made + bytes_of(part)));
  at_[static_cast<std::size_t>(part)].store(made, std::memory_order_release);
  return made;
}

// Returns the offset of an address in the segment; -1 if it is in no mapped part. The range of all
// parts is checked first, since most addresses lie in none.
std::int64_t SegmentParts::offset_of(const void* address) const {
  const auto* const looked_for = static_cast<const std::byte*>(address);
  if (looked_for >= end_.load(std::memory_order_acquire) || looked_for < lowest_.load()) return -1;
  for (int part = 0; part < count(); ++part) {
    const std::byte* const begin = at(part);
    if (begin && looked_for >= begin && looked_for < begin + bytes_of(part))
      return begin_of(part) + (looked_for - begin);
  }
  return -1;
}

}  // namespace weft
