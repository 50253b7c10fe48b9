#include "select/result_watch.h"

#include <algorithm>

namespace weft {

std::int64_t ResultWatch::median(Looks looks) {
  const auto middle = looks.begin() + kLooks / 2;
  std::nth_element(looks.begin(), middle, looks.end());
  return *middle;
}

void ResultWatch::look(std::int64_t ns) {
  if (looks_ < kLooks) first_[looks_] = ns;
  last_[looks_ % kLooks] = ns;
  ++looks_;
}

bool ResultWatch::has_changed() const {
  if (looks_ <= kLooks + rest_) return false;
  const std::int64_t before_ns = median(first_), now_ns = median(last_);
  return std::max(before_ns, now_ns) * 3 > std::min(before_ns, now_ns) * 4;
}

void ResultWatch::compared(bool was_in_vain) {
  looks_ = 0;
  rest_ = was_in_vain ? std::min(2 * rest_ + static_cast<std::uint32_t>(kLooks), kMostRest) : 0;
}

}  // namespace weft
