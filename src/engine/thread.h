// Thread: a thread of Weft's. No signal is delivered to it but those that its own instructions
// raise, and running out of threads is a value, not an exception.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "base/result.h"

namespace weft {

class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Returns an error with the system's words if it refuses (RLIMIT_NPROC, memory). stack: is used
  // for the life of the process; if it is too short or missing, the system's is used.
  Result<bool> start(std::function<void()> main, std::span<std::byte> stack = {});
  // Returns whether it was started and neither joined nor detached.
  bool is_started() const { return thread_.has_value(); }
  bool is_this_one() const { return thread_ && pthread_equal(*thread_, pthread_self()) != 0; }
  void join();
  void detach();

 private:
  std::optional<pthread_t> thread_;
};

}  // namespace weft
