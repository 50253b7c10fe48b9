// Epoch: what is remembered of calls holds as long as it lasts. Why one number for all: whoever
// remembers asks at each call, and a short collective has no time for several questions.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

inline std::atomic<std::uint64_t> current_epoch{1};

// Never 0.
inline std::uint64_t epoch() {
  return current_epoch.load(std::memory_order_acquire);
}

// The epoch while short messages may go straight to the library (Runtime::lets_straight_on), else
// 0: one question for both.
inline std::atomic<std::uint64_t> straight_epoch{0};

// A communicator has been made or freed; or a datatype or operator, whose handle may then mean
// another one.
inline void begin_epoch() {
  const std::uint64_t now = current_epoch.fetch_add(1, std::memory_order_release) + 1;
  std::uint64_t before = straight_epoch.load();
  while (before != 0 && before < now && !straight_epoch.compare_exchange_weak(before, now)) {
  }
}

}  // namespace weft
