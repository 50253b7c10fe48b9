// Pace: how long a progress thread may sleep before it looks again, from the duration of earlier
// rounds. A fixed time would not do: a short sleep wakes the core for nothing while a long message
// travels, and a long one delays short collectives. It is a pure function of the times it is given,
// so that simulations can use it, too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

class Pace {
 public:
  static constexpr std::int64_t kLeast_ns = 30'000, kMost_ns = 500'000;

  // Must be called when there is work after a time without.
  void begin(std::int64_t now_ns) { since_ns_ = now_ns; }
  // Must be called when a round has ended.
  void progressed(std::int64_t now_ns) {
    const std::int64_t took_ns = now_ns - since_ns_;
    usual_ns_ = usual_ns_ == 0 ? took_ns : usual_ns_ + (took_ns - usual_ns_) / 4;
    since_ns_ = now_ns;
  }

  // Returns half of the rest of the usual time; afterwards an eighth of the elapsed time, so that
  // the end of a round is noticed within an eighth of its duration, or the least.
  std::int64_t sleep_ns(std::int64_t now_ns) const {
    const std::int64_t passed_ns = now_ns - since_ns_, left_ns = usual_ns_ - passed_ns;
    return std::clamp(std::max(left_ns / 2, passed_ns / 8), kLeast_ns, kMost_ns);
  }

 private:
  std::int64_t since_ns_ = 0;  // the last round's end
  std::int64_t usual_ns_ = 0;  // 0: none has ended yet
};

}  // namespace weft
