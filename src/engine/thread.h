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

  // An error where the system refuses (RLIMIT_NPROC, memory): its words. stack: to run on, for the
  // life of the process; where it is too short, or there is none, the system's.
  Result<bool> start(std::function<void()> main, std::span<std::byte> stack = {});
  // Neither joined nor detached.
  bool is_started() const { return thread_.has_value(); }
  bool is_this_one() const { return thread_ && pthread_equal(*thread_, pthread_self()) != 0; }
  void join();
  void detach();

 private:
  std::optional<pthread_t> thread_;
};

}  // namespace weft
