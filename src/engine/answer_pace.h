// AnswerPace: how often the progress thread polls for one-sided accesses that other ranks begin and
// wait for, and of which this rank is not told (MPI_Win_lock). It learns from the duration of the
// MPI library's calls, which take longer if they have received something. After an arrival the next
// poll comes soon, since an access takes several messages, one after the other. Then the time
// between polls grows with the time since the arrival. It is a pure function of the times it is
// given.
#pragma once

#include <cstdint>

namespace weft {

class AnswerPace {
 public:
  // Least and longest time between two polls. With the longest, polls take about 1 % of a core.
  static constexpr std::int64_t kLeast_ns = 20'000, kMost_ns = 2'500'000;
  // A poll goes on calling the MPI library for at least this time after the last arrival, since a
  // rank of the same node sends its next message within that time.
  static constexpr std::int64_t kLinger_ns = 4'000;
  // A poll ends after this many arrivals, because library calls that have become slower look like
  // arrivals.
  static constexpr int kMostArrivals = 512;

  // Returns how many nanoseconds to sleep until the next poll.
  std::int64_t sleep_ns(std::int64_t now_ns) const;
  // Returns whether this poll should call the MPI library once more. calls: how often it has called
  // so far. now_ns: the time at the end of the last call. took_ns: the duration of the last call.
  bool continues(int calls, std::int64_t now_ns, std::int64_t took_ns);
  // Returns whether the last call of the MPI library has received something.
  bool has_arrived() const { return has_arrived_; }

 private:
  bool first_is_long(std::int64_t took_ns);
  bool later_is_long(std::int64_t took_ns);

  std::int64_t arrived_ns_ = -kMost_ns;  // time of the last arrival
  std::int64_t quiet_since_ns_ = 0;  // time of the last arrival or of the first call in this poll
  // Usual duration of the first call in a poll; 0 if not known yet.
  std::int64_t usual_first_ns_ = 0;
  // Shortest duration of a later call in a poll; 0 if not known yet.
  std::int64_t least_ns_ = 0;
  int arrivals_ = 0;  // number of arrivals in the current poll
  bool has_arrived_ = false;
};

}  // namespace weft
