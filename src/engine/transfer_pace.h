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
  // Limits of the time between two polls: the shortest, the longest while arrivals are expected
  // soon, and the longest at all. A poll takes some microseconds, perhaps of the application's
  // core. If nothing arrives for long, the application keeps 99 % of that core.
  static constexpr std::int64_t kLeast_ns = 20'000, kSlow_ns = 500'000, kMost_ns = 2'000'000;
  // The longest time between two polls if only other ranks may begin transfers, which may never
  // come.
  static constexpr std::int64_t kMostForOthers_ns = 64'000'000;
  // In the long run the time between two polls is the time since the last start or end of a
  // transfer, divided by this number.
  static constexpr std::int64_t kParts = 64;
  // For this time after the last transfer the thread keeps polling, so that the next transfer needs
  // no system call to wake it.
  static constexpr std::int64_t kLinger_ns = 2'000'000;

  // The age from which polls for a transfer are kSlow_ns apart. It is assumed for transfers that
  // appear although none has started: these are accesses that only other ranks may begin.
  static constexpr std::int64_t kSlowAfter_ns = 8 * kSlow_ns;

  // Returns the time to sleep in ns; 0 if nothing is outstanding now or was lately. outstanding:
  // the current number of transfers. started: how many have started so far. opened: how often other
  // ranks were allowed to begin some. The last two matter if transfers end and as many start
  // between two polls. exposed: the number of outstanding windows that others may access.
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
  // Notes that the last poll found progress.
  void moved() { has_moved_ = true; }

 private:
  std::int64_t since_ns_ = -kLinger_ns;  // time when a transfer last began or ended
  int seen_ = 0;
  std::uint32_t started_ = 0, opened_ = 0;
  bool has_moved_ = false;
};

// TransferLook: decides how often the library is called in succession, namely as long as it makes
// progress. Some libraries move a few KiB per call (MPICH inside a node: 8), so that a long
// transfer would otherwise take hundreds of polls. Only the duration of a call shows progress, and
// the first call has cold caches. It is a pure function of the times it is given.
class TransferLook {
 public:
  static constexpr int kMostCalls = 16;

  // Returns whether another call should follow. calls: calls so far; took_ns: duration of the last
  // one.
  bool continues(int calls, std::int64_t took_ns) {
    if (calls == 1) return true;
    if (least_ns_ == 0 || took_ns < least_ns_) least_ns_ = took_ns;
    if (took_ns <= 2 * least_ns_) return false;
    if (calls < kMostCalls) return true;
    least_ns_ += least_ns_ / 32 + 1;  // lets the bound rise, as calls may have become slower
    return false;
  }

 private:
  std::int64_t least_ns_ = 0;  // shortest call, taken as one that moves nothing; 0 if not known
};

}  // namespace weft
