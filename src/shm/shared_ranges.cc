// A list: there are as many as ranks of a node, and a few windows.
#include "shm/shared_ranges.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

bool lies_in(const SharedRanges::Range& range, const std::byte* begin, std::int64_t bytes) {
  return begin >= range.begin && begin + bytes <= range.begin + range.bytes;
}

}  // namespace

SharedRanges::Range* SharedRanges::numbered(std::int64_t number) {
  const auto found = std::find_if(ranges_.begin(), ranges_.end(),
                                  [&](const Range& range) { return range.number == number; });
  return found == ranges_.end() ? nullptr : &*found;
}

void SharedRanges::add(Range range) {
  const std::lock_guard lock(mutex_);
  ranges_.push_back(std::move(range));
}

void SharedRanges::set_leaving(std::int64_t number, bool leaving) {
  const std::lock_guard lock(mutex_);
  if (Range* range = numbered(number)) range->leaving = leaving;
}

void SharedRanges::remove(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  if (Range* range = numbered(number)) ranges_.erase(ranges_.begin() + (range - ranges_.data()));
}

ShownBuffer SharedRanges::shown(const std::byte* begin, std::int64_t bytes,
                                std::span<const int> ranks) const {
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_) {
    if (range.leaving || !lies_in(range, begin, bytes)) continue;
    if (std::includes(range.ranks.begin(), range.ranks.end(), ranks.begin(), ranks.end()))
      return {range.number, begin - range.begin};
  }
  return {ShownBuffer::kNotShared, 0};
}

std::optional<std::byte*> SharedRanges::find(const ShownBuffer& shown) const {
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_)
    if (range.number == shown.memory) return range.begin + shown.offset;
  return std::nullopt;
}

}  // namespace weft
