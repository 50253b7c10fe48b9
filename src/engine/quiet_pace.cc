// Implements QuietPace. It keeps the mean and the mean deviation of round durations as TCP does for
// round-trip times (RFC 6298).
#include "engine/quiet_pace.h"

#include <algorithm>
#include <cstdlib>

namespace weft {
namespace {

std::int64_t within(std::int64_t ns) {
  return std::clamp(ns, QuietPace::kLeast_ns, QuietPace::kMost_ns);
}

}  // namespace

void QuietPace::progressed(std::int64_t now_ns) {
  const std::int64_t took_ns = now_ns - since_ns_;
  since_ns_ = now_ns;
  if (usual_ns_ == 0) {
    usual_ns_ = took_ns;
    deviation_ns_ = took_ns / 2;
    return;
  }
  deviation_ns_ += (std::abs(took_ns - usual_ns_) - deviation_ns_) / 4;
  usual_ns_ += (took_ns - usual_ns_) / 8;
}

std::int64_t QuietPace::sleep_ns(std::int64_t now_ns) const {
  const std::int64_t passed_ns = now_ns - since_ns_;
  const std::int64_t earliest_ns = usual_ns_ - 2 * deviation_ns_;
  const std::int64_t late_ns = passed_ns - (usual_ns_ + 2 * deviation_ns_);
  if (passed_ns < kShort_ns && earliest_ns < kShort_ns) return 0;
  if (passed_ns < earliest_ns) return within(std::min(passed_ns / 4, earliest_ns - passed_ns));
  return within(std::min(passed_ns / 8, std::max(deviation_ns_ / 2, late_ns / 8)));
}

}  // namespace weft
