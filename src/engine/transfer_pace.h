// TransferPace: how long the progress thread sleeps between two looks at transfers, which are
// messages and the like of the application's. Why not Pace: nobody tells the thread when one ends,
// before the application asks for it; so the next look comes after a share of the time that has
// passed. A pure function of what it is told.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weft {

class TransferPace {
 public:
  // A look costs some microseconds, perhaps of the application's own core: these leave it 99 parts
  // in 100 where nothing comes for long.
  static constexpr std::int64_t kLeast_ns = 20'000, kSlow_ns = 500'000, kMost_ns = 2'000'000;
  // The same where nothing is outstanding but what others may do: they may never do it.
  static constexpr std::int64_t kMostForOthers_ns = 64'000'000;
  // In the end a look comes after one of so many parts of the time that has passed.
  static constexpr std::int64_t kParts = 64;
  // For so long after the last transfer, the next one needs no system call to wake the thread.
  static constexpr std::int64_t kLinger_ns = 2'000'000;

  // What is outstanding without having started is others', and may be nothing at all.
  static constexpr std::int64_t kSlowAfter_ns = 8 * kSlow_ns;

  // outstanding: so many transfers are, now; started: so many have been so far; opened: so often
  // others could begin some from then on. Of a program that ends some and starts as many between
  // two looks only the latter tell. exposed: so many of those outstanding are windows that others
  // may access. 0: nothing is outstanding, and nothing has been lately.
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
  // The last look has found that something moves.
  void moved() { has_moved_ = true; }

 private:
  std::int64_t since_ns_ = -kLinger_ns;  // something has begun or ended
  int seen_ = 0;
  std::uint32_t started_ = 0, opened_ = 0;
  bool has_moved_ = false;
};

// TransferLook: of one look, how often the library is asked: again while something moves. Some
// libraries move a few KiB each time (MPICH inside a node: 8), so that a long transfer would take
// hundreds of looks. That something has moved only the time of a call tells. The first one finds
// cold caches. A pure function of the times it is told.
class TransferLook {
 public:
  static constexpr int kMostCalls = 16;

  // After so many calls, of which the last one took so long.
  bool goes_on(int calls, std::int64_t took_ns) {
    if (calls == 1) return true;
    if (least_ns_ == 0 || took_ns < least_ns_) least_ns_ = took_ns;
    if (took_ns <= 2 * least_ns_) return false;
    if (calls < kMostCalls) return true;
    least_ns_ += least_ns_ / 32 + 1;  // a call may take longer than it did
    return false;
  }

 private:
  std::int64_t least_ns_ = 0;  // of a call that moves nothing; 0: not known
};

}  // namespace weft
