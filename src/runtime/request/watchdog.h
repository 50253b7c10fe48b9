// Watchdog reports if a rank has waited in an MPI call for too long, with the state of each of its
// incomplete collectives. It has a thread of its own, which runs even if all other threads hang.
// This thread only reads and prints, and makes no MPI calls, so that it can be used at any thread
// level.
#pragma once

#include <atomic>

#include "base/left_calls.h"
#include "library/generated/call_ids.h"

namespace weft {

// Starts the watchdog. It reports calls that last longer than `seconds`.
void start_watchdog(int seconds, int rank);
void stop_watchdog();

extern std::atomic<bool> watching;  // true between start_watchdog() and stop_watchdog()

// While this object lives, the watchdog knows that this thread is inside an MPI call that may wait
// for another process.
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
