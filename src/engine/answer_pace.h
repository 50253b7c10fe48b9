// AnswerPace: how often the progress thread polls for accesses that other ranks begin and wait for,
// and of which this rank is not told (MPI_Win_lock). It learns from the duration of the library's
// calls, which take longer if they have received something. After an arrival the next poll comes
// soon, since an access takes several messages, one after the other. Then the time between polls
// grows with the time since the arrival. It is a pure function of the times it is given.
#pragma once

#include <cstdint>

namespace weft {

class AnswerPace {
 public:
  // Limits of the time between two polls. With the longest, polls take about 1 % of a core.
  static constexpr std::int64_t kLeast_ns = 20'000, kMost_ns = 2'500'000;
  // A poll calls the library for at least this time after the last arrival, since a rank of the
  // same node sends its next message within that time.
  static constexpr std::int64_t kLinger_ns = 4'000;
  // A poll ends after this many arrivals, because calls that have become slower look like arrivals.
  static constexpr int kMostArrivals = 512;

  // Returns the time to sleep until the next poll.
  std::int64_t sleep_ns(std::int64_t now_ns) const;
  // Returns whether the library should be called once more. calls: calls so far in succession;
  // now_ns: end of the last one; took_ns: its duration.
  bool continues(int calls, std::int64_t now_ns, std::int64_t took_ns);
  // Returns whether the last call has received something.
  bool has_arrived() const { return has_arrived_; }

 private:
  bool first_is_long(std::int64_t took_ns);
  bool later_is_long(std::int64_t took_ns);

  std::int64_t arrived_ns_ = -kMost_ns;  // time of the last arrival
  std::int64_t quiet_since_ns_ = 0;  // time of the last arrival or of the first call in this poll
  std::int64_t usual_first_ns_ = 0;  // usual duration of a poll's first call; 0: not known
  std::int64_t least_ns_ = 0;        // least duration of a later call; 0: not known
  int arrivals_ = 0;                 // in this poll
  bool has_arrived_ = false;
};

}  // namespace weft
