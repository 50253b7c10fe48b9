// Pace: computes how long a progress thread may sleep before it looks again, from the duration of
// earlier rounds. A fixed time would not do: if short, it wakes the core for nothing while a long
// message travels; if long, it delays short collectives. It is a pure function of the times it is
// given, so that simulations can use it, too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

class Pace {
 public:
  static constexpr std::int64_t kLeast_ns = 30'000, kMost_ns = 500'000;

  // Begins to measure the duration of a round. Must be called when the first operation arrives
  // after a time without any. now_ns: the current time.
  void begin(std::int64_t now_ns) { since_ns_ = now_ns; }
  // Records the duration of a round that has ended now.
  void progressed(std::int64_t now_ns) {
    const std::int64_t took_ns = now_ns - since_ns_;
    usual_ns_ = usual_ns_ == 0 ? took_ns : usual_ns_ + (took_ns - usual_ns_) / 4;
    since_ns_ = now_ns;
  }

  // Returns half of the time left until a usual round would end. After that it returns an eighth of
  // the elapsed time, so that the end of a round is noticed within an eighth of its duration.
  // kLeast_ns and kMost_ns limit the result.
  std::int64_t sleep_ns(std::int64_t now_ns) const {
    const std::int64_t passed_ns = now_ns - since_ns_, left_ns = usual_ns_ - passed_ns;
    return std::clamp(std::max(left_ns / 2, passed_ns / 8), kLeast_ns, kMost_ns);
  }

 private:
  std::int64_t since_ns_ = 0;  // time when the last round ended
  std::int64_t usual_ns_ = 0;  // smoothed duration of a round; 0 if none has ended yet
};

}  // namespace weft
