// QuietPace: how long a progress thread sleeps between looks if it is to look as rarely as
// possible. It learns the duration of rounds and its variation: it looks rarely until the earliest
// time at which a round may end, and often from then on. For short rounds it stays awake, since in
// such collectives others are late now and then. The end of a round is noticed within an eighth of
// its duration, or kLeast_ns.
// It also looks earlier, since most MPI libraries move the parts of a long message only while
// somebody looks, and agree on it first. The time between two looks grows with the elapsed time:
// otherwise rounds would take longer, and teach it to look still more rarely. It is a pure function
// of the times it is given.
#pragma once

#include <cstdint>

namespace weft {

class QuietPace {
 public:
  static constexpr std::int64_t kLeast_ns = 20'000;
  // Rounds that may end sooner are awaited without sleeping, which would cost about as much.
  static constexpr std::int64_t kShort_ns = 50'000;
  // The kernel buffers through which a long message passes must not run empty.
  static constexpr std::int64_t kMost_ns = 500'000;

  // Must be called when there is work after a time without.
  void begin(std::int64_t now_ns) { since_ns_ = now_ns; }
  // Must be called when a round has ended.
  void progressed(std::int64_t now_ns);
  // Returns the time to sleep; 0 means not to sleep.
  std::int64_t sleep_ns(std::int64_t now_ns) const;

 private:
  std::int64_t since_ns_ = 0;      // the last round's end
  std::int64_t usual_ns_ = 0;      // 0: none has ended yet
  std::int64_t deviation_ns_ = 0;  // mean, of how long rounds take
};

}  // namespace weft
