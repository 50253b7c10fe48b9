// RetryBackoff: decides whether calls like this one look for shared buffers. After failures it is
// tried more and more rarely; after a success, every time. Each call has a habit of its own, since
// another one's result says nothing about it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "schedule/schedule.h"

namespace weft {

class RetryBackoff {
 public:
  // Must be called once for each call.
  bool worth_trying(std::uint32_t fingerprint) {
    Habit& usual = habit(fingerprint);
    if (usual.left == 0) return true;
    --usual.left;
    return false;
  }
  void tried(std::uint32_t fingerprint, bool found) {
    Habit& usual = habit(fingerprint);
    usual.pause =
        found ? 0 : static_cast<std::uint8_t>(std::min(2 * usual.pause + 1, kLongestPause));
    usual.left = usual.pause;
  }

 private:
  static constexpr int kLongestPause = 63;

  struct Habit {
    std::uint8_t pause = 0;  // calls to let pass after one in vain
    std::uint8_t left = 0;   // of these
  };
  // Fingerprints are odd.
  Habit& habit(std::uint32_t fingerprint) { return backoffs_[fingerprint >> 1]; }

  std::array<Habit, 1u << (kFingerprintBits - 1)> backoffs_{};
};

}  // namespace weft
