// QuietPace: computes how long a progress thread sleeps if it is to poll as rarely as possible. It
// learns the duration of rounds and its variation. It polls rarely until the earliest time at which
// a round may end, and often from then on. The end of a round is noticed within an eighth of its
// duration, or within kLeast_ns if that is longer. For short rounds it does not sleep. It also
// polls before a round may end, because most MPI libraries move the parts of a long message, and
// the handshake before them, only while they are called. The time between two polls grows with the
// elapsed time; otherwise rounds would take longer and teach it to poll still more rarely. It is a
// pure function of the times it is given.
#pragma once

#include <cstdint>

namespace weft {

class QuietPace {
 public:
  static constexpr std::int64_t kLeast_ns = 20'000;
  // The thread does not sleep if a round may end within this time, since a sleep would cost about
  // as much.
  static constexpr std::int64_t kShort_ns = 50'000;
  // The longest sleep. The kernel buffers through which a long message passes must not run empty.
  static constexpr std::int64_t kMost_ns = 500'000;

  // Begins to measure the duration of a round. Must be called when an operation arrives after a
  // time without any. now_ns: the current time.
  void begin(std::int64_t now_ns) { since_ns_ = now_ns; }
  // Records the duration of a round that has ended now.
  void progressed(std::int64_t now_ns);
  // Returns how many nanoseconds to sleep before the next poll; 0 for no sleep.
  std::int64_t sleep_ns(std::int64_t now_ns) const;

 private:
  std::int64_t since_ns_ = 0;  // time when the last round ended
  // Smoothed duration of a round in nanoseconds; 0 if none has ended yet.
  std::int64_t usual_ns_ = 0;
  std::int64_t deviation_ns_ = 0;  // smoothed mean deviation of the duration, in nanoseconds
};

}  // namespace weft
