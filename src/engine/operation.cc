// The one state change of an operation: active to done.
#include "engine/operation.h"

namespace weft {

bool Operation::is_over(int polls) {
  const auto result = execution_.advance(polls);
  round_.store(execution_.round(), std::memory_order_relaxed);
  under_way_.store(&execution_.schedule(), std::memory_order_relaxed);
  if (result && !*result) return false;
  finished(result ? nullptr : &result.error());
  return true;
}

bool Operation::advance() {
  if (done()) return true;
  if (!is_over(1)) return false;
  done_.store(1);  // seq_cst: notify_all must not look for waiters before this is visible
  done_.notify_all();
  return true;
}

bool Operation::advance_in_hand(int polls) {
  if (done()) return true;
  if (!is_over(polls)) return false;
  done_.store(1, std::memory_order_release);
  return true;
}

void Operation::rewind() {
  execution_.rewind();
  done_.store(0, std::memory_order_release);
}

void Operation::wait_done() const {
  done_.wait(0, std::memory_order_acquire);
}

}  // namespace weft
