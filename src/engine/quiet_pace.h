// QuietPace: how long a progress thread sleeps before it looks again, if it is to look as seldom as
// it can. It learns how long rounds take and how much that varies: it looks seldom until the
// earliest time at which a round may end, and often from there on; what may end at once is waited
// for awake, since others are late now and then in collectives whose rounds are short. No round is
// seen to end later than an eighth of its time, or the least. Why a look at all before: most MPI
// libraries move the parts of a long message only while somebody looks, and agree on it first. So
// the time between two looks grows with what has passed: else a round would take longer, and teach
// it to look still more seldom. A pure function of the times it is told.
#pragma once

#include <cstdint>

namespace weft {

class QuietPace {
 public:
  static constexpr std::int64_t kLeast_ns = 20'000;
  // What may end sooner is waited for awake: a sleep costs about as much.
  static constexpr std::int64_t kShort_ns = 50'000;
  // The buffers of the kernel's that a long message goes through must not run empty.
  static constexpr std::int64_t kMost_ns = 500'000;

  // There is work after a time without.
  void begin(std::int64_t now_ns) { since_ns_ = now_ns; }
  // A round has ended.
  void progressed(std::int64_t now_ns);
  // 0: not at all.
  std::int64_t sleep_ns(std::int64_t now_ns) const;

 private:
  std::int64_t since_ns_ = 0;      // the last round's end
  std::int64_t usual_ns_ = 0;      // 0: none has ended yet
  std::int64_t deviation_ns_ = 0;  // mean, of how long rounds take
};

}  // namespace weft
