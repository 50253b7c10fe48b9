// CallsInOrder: the calls of one communicator that cannot go their way yet. Once one is held, all
// later ones are, too, and they go on in the order in which the application made them, since that
// order is what the ranks' messages and the library's collectives are told apart by.
// Why apart from MPI: the search over all orders of events runs this very code.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <utility>

namespace weft {

// `Held` has `bool go_on()`: true once it goes its way, false if it is still not known.
template <class Held>
class CallsInOrder {
 public:
  // By whoever makes the calls. True: the next one has to be held.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // By the same. True if no other is held.
  bool hold(Held call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    any_.store(true, std::memory_order_relaxed);
    return calls_.size() == 1;
  }

  // By anyone: lets go on what can. True if that was the last.
  bool let_go() {
    const std::lock_guard lock(mutex_);
    if (calls_.empty()) return false;
    while (!calls_.empty() && calls_.front()->go_on()) calls_.pop_front();
    if (!calls_.empty()) return false;
    any_.store(false, std::memory_order_release);
    return true;
  }

 private:
  std::mutex mutex_;       // guards calls_
  std::list<Held> calls_;  // no deque, which takes memory for nothing
  std::atomic<bool> any_{false};
};

}  // namespace weft
