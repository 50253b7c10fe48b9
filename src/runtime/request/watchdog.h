// Watchdog: reports in which call a rank has waited for too long, and the state of each of its
// incomplete collectives. It has a thread of its own, which runs even if all others hang. It only
// reads and prints, and makes no MPI call, so that it may run at every thread level.
#pragma once

#include <atomic>

#include "base/left_calls.h"
#include "library/generated/call_ids.h"

namespace weft {

// Starts watching calls that may wait, and reports those that last longer than `seconds`.
void start_watchdog(int seconds, int rank);
void stop_watchdog();

extern std::atomic<bool> watching;  // true between start_watchdog() and stop_watchdog()

// Tells the watchdog, while it lives, that the application is inside a call that may wait for
// another process.
class WatchedCall {
 public:
  explicit WatchedCall(CallId id) {
    if (watching.load(std::memory_order_relaxed)) entered_.begin(id);
  }

 private:
  class Entered {
   public:
    explicit Entered(CallId id);
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
  };
  LongjmpSafe<Entered> entered_;
};

}  // namespace weft
