// CallsInOrder: the deferred calls of one communicator, which wait until their variant (engine and
// algorithm) is known on all ranks. Once one call is deferred, all later ones are, too, and they
// start in the order in which the application made them, since messages and the MPI library's
// collectives are matched by that order. The class is independent of MPI, so that a test can run it
// in all orders of events.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <utility>

namespace weft {

// The type Deferred must have a function `bool try_to_start()`, which returns true once the call
// has started.
template <class Deferred>
class CallsInOrder {
 public:
  // Returns whether a deferred call still waits, so that the next call must be deferred, too. Only
  // the thread that makes the application's calls may call it.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // Defers a call. Returns true if it is the only deferred call, false if others wait before it.
  // Only the thread that makes the application's calls may call it.
  bool defer(Deferred call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    any_.store(true, std::memory_order_relaxed);
    return calls_.size() == 1;
  }

  // Starts all deferred calls that can start. Returns true if it has thereby started the last one;
  // false if some are left, or if there was none. Any thread may call it.
  bool release() {
    const std::lock_guard lock(mutex_);
    if (calls_.empty()) return false;
    while (!calls_.empty() && calls_.front()->try_to_start()) calls_.pop_front();
    if (!calls_.empty()) return false;
    any_.store(false, std::memory_order_release);
    return true;
  }

 private:
  std::mutex mutex_;           // guards calls_
  std::list<Deferred> calls_;  // a list, since an empty deque allocates memory
  std::atomic<bool> any_{false};
};

}  // namespace weft
