// Epoch: a number that changes when cached facts about calls become invalid. There is one number
// for all facts, because every call checks them, and a short collective has time for a single check
// only.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

inline std::atomic<std::uint64_t> current_epoch{1};

// Returns the number of the current epoch; never 0. Facts cached in an earlier epoch are invalid.
inline std::uint64_t epoch() {
  return current_epoch.load(std::memory_order_acquire);
}

// The epoch while short messages may pass through to the library (Runtime::lets_pass_through()),
// otherwise 0, so that one check covers both.
inline std::atomic<std::uint64_t> passthrough_epoch{0};

// Begins a new epoch. Is called when a communicator was made or freed, or a datatype or operator
// was freed, since its handle may be reused.
inline void begin_epoch() {
  const std::uint64_t now = current_epoch.fetch_add(1, std::memory_order_release) + 1;
  std::uint64_t before = passthrough_epoch.load();
  while (before != 0 && before < now && !passthrough_epoch.compare_exchange_weak(before, now)) {
  }
}

}  // namespace weft
