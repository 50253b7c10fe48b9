// CallsInOrder: the deferred calls of one communicator. Once one is deferred, all later ones are,
// too, and they continue in the order in which the application made them: the ranks' messages and
// the library's collectives are matched by that order. It is separate from MPI so that the search
// over all orders of events can run this code.
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
  // Is called by the thread that makes the calls. Returns true if the next call must be deferred.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // Is called by the same thread. Returns true if no other call is deferred.
  bool defer(Deferred call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    any_.store(true, std::memory_order_relaxed);
    return calls_.size() == 1;
  }

  // May be called by any thread: starts all calls that can start. Returns true if none is left.
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
  std::list<Deferred> calls_;  // no deque, which takes memory for nothing
  std::atomic<bool> any_{false};
};

}  // namespace weft
