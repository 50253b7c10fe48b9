// TransferPace: computes how long the progress thread sleeps between two polls of the MPI library
// on behalf of transfers, such as long messages of the application. Unlike QuietPace it does not
// learn when a transfer ends, so the next poll comes after a share of the elapsed time. It is a
// pure function of its input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weft {

class TransferPace {
 public:
  // Limits of the time between two polls: the shortest, the longest while a transfer is young, and
  // the longest for transfers of any age. A poll takes some microseconds, perhaps of the
  // application's core. With the last limit the application keeps 99 % of that core.
  static constexpr std::int64_t kLeast_ns = 20'000, kSlow_ns = 500'000, kMost_ns = 2'000'000;
  // The longest time between two polls if all transfers are accesses that only other ranks may
  // begin, and may never begin.
  static constexpr std::int64_t kMostForOthers_ns = 64'000'000;
  // In the long run the time between two polls is the time since a transfer last began or ended,
  // divided by this number.
  static constexpr std::int64_t kParts = 64;
  // The thread keeps polling for this time after the last transfer has ended, so that the next
  // transfer needs no system call to wake it.
  static constexpr std::int64_t kLinger_ns = 2'000'000;

  // The age of a transfer from which polls are kSlow_ns apart. A transfer that appears although
  // none has started counts as that old: it is an access that only other ranks may begin.
  static constexpr std::int64_t kSlowAfter_ns = 8 * kSlow_ns;

  // Returns how many nanoseconds to sleep; 0 if no transfer is in progress now or was lately.
  // outstanding: the number of transfers in progress. started: how many have begun since the
  // beginning. opened: how often other ranks were allowed to begin some. (These two change even if
  // as many transfers end as begin between two polls.) exposed: how many of the transfers in
  // progress are windows that other ranks may access.
  std::int64_t sleep_ns(std::int64_t now_ns, int outstanding, std::uint32_t started,
                        std::uint32_t opened = 0, int exposed = 0) {
    if (started != started_ || (seen_ > 0 && outstanding == 0))
      since_ns_ = now_ns;
    else if (seen_ == 0 && outstanding > 0)
      since_ns_ = now_ns - kSlowAfter_ns;
    else if (opened != opened_)
      since_ns_ = std::max(since_ns_, now_ns - kSlowAfter_ns);
    if (std::exchange(has_moved_, false))
      since_ns_ = std::max(since_ns_, now_ns - kParts * kMost_ns);
    seen_ = outstanding;
    started_ = started;
    opened_ = opened;
    const std::int64_t passed_ns = now_ns - since_ns_;
    if (outstanding == 0) return passed_ns < kLinger_ns ? kSlow_ns : 0;
    const std::int64_t soon = std::clamp(passed_ns / 8, kLeast_ns, kSlow_ns);
    const std::int64_t most_ns = exposed < outstanding ? kMost_ns : kMostForOthers_ns;
    return std::clamp(passed_ns / kParts, soon, most_ns);
  }
  // Notes that the last poll has moved data.
  void moved() { has_moved_ = true; }

 private:
  std::int64_t since_ns_ = -kLinger_ns;  // time when a transfer last began or ended
  int seen_ = 0;
  std::uint32_t started_ = 0, opened_ = 0;
  bool has_moved_ = false;
};

// TransferLook: decides how often a poll calls the MPI library in succession: as long as calls move
// data. Some libraries move a few KiB per call (MPICH inside a node: 8), so that a long transfer
// would otherwise take hundreds of polls. Only the duration of a call tells whether it has moved
// data, and the first call has cold caches. It is a pure function of the times it is given.
class TransferLook {
 public:
  static constexpr int kMostCalls = 16;

  // Returns whether another call should follow. calls: number of calls so far in this poll.
  // took_ns: duration of the last one.
  bool continues(int calls, std::int64_t took_ns) {
    if (calls == 1) return true;
    if (least_ns_ == 0 || took_ns < least_ns_) least_ns_ = took_ns;
    if (took_ns <= 2 * least_ns_) return false;
    if (calls < kMostCalls) return true;
    // Calls that move nothing may have become slower, so their learnt duration rises.
    least_ns_ += least_ns_ / 32 + 1;
    return false;
  }

 private:
  // Shortest call so far, which is taken for one that moves nothing; 0 if not known yet.
  std::int64_t least_ns_ = 0;
};

}  // namespace weft
