// Repeats: counts how often an address was used lately. Work that pays only for repeated addresses
// is then left out for others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weft {

class Repeats {
 public:
  // Counts a use of the address `place`, and returns how often it was used, at most 255. The count
  // starts again at 1 after another address with the same hash has replaced it. Thread-safe; of two
  // concurrent counts one may be lost.
  int count(std::uint64_t place) {
    const std::uint64_t mixed = place * 0x9e3779b97f4a7c15u;
    std::atomic<std::uint64_t>& slot = slots_[mixed >> (64 - kSlotBits)];
    const std::uint64_t last = slot.load(std::memory_order_relaxed);
    const std::uint64_t tag = mixed << kCountBits;
    const std::uint64_t before = last >> kCountBits == tag >> kCountBits ? last & kMost : 0;
    const std::uint64_t now = before < kMost ? before + 1 : kMost;
    slot.store(tag | now, std::memory_order_relaxed);
    return static_cast<int>(now);
  }

 private:
  static constexpr unsigned kSlotBits = 8;
  static constexpr unsigned kCountBits = 8;
  static constexpr std::uint64_t kMost = (1u << kCountBits) - 1;

  std::array<std::atomic<std::uint64_t>, 1u << kSlotBits> slots_{};
};

}  // namespace weft
