// The one state change of an operation: active to done.
#include "engine/operation.h"

namespace weft {

bool Operation::advance() {
  if (done()) return true;
  const auto result = execution_.advance();
  round_.store(execution_.round(), std::memory_order_relaxed);
  under_way_.store(&execution_.schedule(), std::memory_order_relaxed);
  if (result && !*result) return false;
  finished(result ? nullptr : &result.error());
  done_.store(1);  // seq_cst: notify_all must not look for waiters before this is visible
  done_.notify_all();
  return true;
}

void Operation::wait_done() const {
  done_.wait(0, std::memory_order_acquire);
}

}  // namespace weft
