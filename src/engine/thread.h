// Thread: a thread that Weft starts. It receives no signals except those that its own instructions
// raise. If the system refuses to create it, the error is returned and not thrown.
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

  // Starts the thread, which runs main(). Returns the system's error message if it refuses
  // (RLIMIT_NPROC, memory). stack: memory for the thread's stack, which must live as long as the
  // process; if it is empty or too short, the system provides a stack.
  Result<bool> start(std::function<void()> main, std::span<std::byte> stack = {});
  // Returns whether the thread was started and has been neither joined nor detached.
  bool is_started() const { return thread_.has_value(); }
  bool is_this_one() const { return thread_ && pthread_equal(*thread_, pthread_self()) != 0; }
  void join();
  void detach();

 private:
  std::optional<pthread_t> thread_;
};

}  // namespace weft
