// Epoch: what is remembered of calls holds as long as it lasts. Why one number for all: whoever
// remembers asks at each call, and a short collective has no time for several questions.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::interpose {

inline std::atomic<std::uint64_t> current_epoch{1};

// Never 0.
inline std::uint64_t epoch() {
  return current_epoch.load(std::memory_order_acquire);
}

// A communicator has been made or freed; or a datatype or operator, whose handle may then mean
// another one.
inline void begin_epoch() {
  current_epoch.fetch_add(1, std::memory_order_release);
}

}  // namespace weft::interpose
