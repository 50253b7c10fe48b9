// An epoch is a period in which cached facts about calls remain valid. It has a number, which
// changes when any of these facts becomes invalid. There is only one number for all facts, because
// every call must compare it, and a short collective has time for only one comparison.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

inline std::atomic<std::uint64_t> current_epoch{1};

// Returns the number of the current epoch, which is never 0. Facts that were cached in an earlier
// epoch are invalid.
inline std::uint64_t epoch() {
  return current_epoch.load(std::memory_order_acquire);
}

// The number of the current epoch while short messages may go directly to the MPI library
// (Runtime::lets_pass_through()); otherwise 0. Thus one comparison checks both conditions.
inline std::atomic<std::uint64_t> passthrough_epoch{0};

// Begins a new epoch. It must be called when a communicator is made or freed, or a datatype or
// operator is freed, since its handle may then mean another object.
inline void begin_epoch() {
  const std::uint64_t now = current_epoch.fetch_add(1, std::memory_order_release) + 1;
  std::uint64_t before = passthrough_epoch.load();
  while (before != 0 && before < now && !passthrough_epoch.compare_exchange_weak(before, now)) {
  }
}

}  // namespace weft
