// CallsInOrder: the deferred calls of one communicator. Once one call is deferred, all later ones
// are, too, and they start in the order in which the application made them, since messages and the
// library's collectives are matched by that order. The class is independent of MPI, so that a test
// can run it in all orders of events.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <utility>

namespace weft {

// `Deferred` must have `bool try_to_start()`, which returns true once the call has started.
template <class Deferred>
class CallsInOrder {
 public:
  // Returns true if the next call must be deferred. Must be called by the thread that makes the
  // calls.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // Defers a call. Returns true if no other call is deferred. Must be called by the thread that
  // makes the calls.
  bool defer(Deferred call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    any_.store(true, std::memory_order_relaxed);
    return calls_.size() == 1;
  }

  // Starts all calls that can start. Returns true if none is left. May be called by any thread.
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
  std::list<Deferred> calls_;  // not a deque, which allocates memory even if empty
  std::atomic<bool> any_{false};
};

}  // namespace weft
