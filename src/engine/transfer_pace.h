// TransferPace: how long the progress thread sleeps between two looks at transfers, which are
// messages and the like of the application's. Why not Pace: nobody tells the thread when one ends,
// before the application asks for it; so the next look comes after a share of the time that has
// passed. A pure function of what it is told.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

class TransferPace {
 public:
  // A look costs some microseconds, perhaps of the application's own core: these leave it 99 parts
  // in 100 where nothing comes for long.
  static constexpr std::int64_t kLeast_ns = 20'000, kSlow_ns = 500'000, kMost_ns = 2'000'000;
  // For so long after the last transfer, the next one needs no system call to wake the thread.
  static constexpr std::int64_t kLinger_ns = 2'000'000;

  // What is outstanding without having started is others', and may be nothing at all.
  static constexpr std::int64_t kSlowAfter_ns = 8 * kSlow_ns;

  // outstanding: so many transfers are, now; started: so many have been so far. Of a program that
  // ends some and starts as many between two looks only the latter tells. 0: nothing is
  // outstanding, and nothing has been lately.
  std::int64_t sleep_ns(std::int64_t now_ns, int outstanding, std::uint32_t started) {
    if (started != started_ || (seen_ > 0 && outstanding == 0))
      since_ns_ = now_ns;
    else if (seen_ == 0 && outstanding > 0)
      since_ns_ = now_ns - kSlowAfter_ns;
    seen_ = outstanding;
    started_ = started;
    const std::int64_t passed_ns = now_ns - since_ns_;
    if (outstanding == 0) return passed_ns < kLinger_ns ? kSlow_ns : 0;
    const std::int64_t soon = std::clamp(passed_ns / 8, kLeast_ns, kSlow_ns);
    return std::clamp(passed_ns / 64, soon, kMost_ns);
  }

 private:
  std::int64_t since_ns_ = -kLinger_ns;  // something has begun or ended
  int seen_ = 0;
  std::uint32_t started_ = 0;
};

}  // namespace weft
