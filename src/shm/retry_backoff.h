// RetryBackoff: decides whether a call tries to use other ranks' buffers in place. After failures
// it tries more and more rarely; after a success, every time. Calls are told apart by a hash of
// their arguments (fingerprint), since the result of one call says nothing about another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "schedule/schedule.h"

namespace weft {

class RetryBackoff {
 public:
  // Returns whether this call should try to use other ranks' buffers in place. Must be called once
  // per call.
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
    std::uint8_t pause = 0;  // number of calls that do not try after the last failure
    std::uint8_t left = 0;   // number of calls that still must not try
  };
  // Returns the state of calls with this fingerprint. Fingerprints are odd, so half as many entries
  // suffice.
  Habit& habit(std::uint32_t fingerprint) { return backoffs_[fingerprint >> 1]; }

  std::array<Habit, 1u << (kFingerprintBits - 1)> backoffs_{};
};

}  // namespace weft
