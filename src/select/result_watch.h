// ResultWatch: notices that the calls of a comparison (Weft's variant against the library's call)
// have changed their time since its result was found. Then the result may no longer hold: the host
// of a virtual machine may have moved the ranks' cores. It is told looks, times on which the ranks
// have agreed, so that it gives the same answer on all of them. It is independent of MPI and of the
// clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

class ResultWatch {
 public:
  // The number of looks of which the median counts, so that a single disturbance means nothing.
  static constexpr std::size_t kLooks = 3;
  // The most looks between two comparisons while the calls' time keeps changing, but the result
  // does not.
  static constexpr std::uint32_t kMostRest = 96;

  // Notes the time of calls in ns.
  void look(std::int64_t ns);
  // Returns whether the calls now take a third more than after the last comparison, or a quarter
  // less. Returns false until enough looks have told both times.
  bool has_changed() const;
  // Begins anew after a comparison. A comparison that confirmed the result was in vain: the next
  // one is then put off, for twice as many looks as after the previous one in vain.
  void compared(bool was_in_vain);

 private:
  using Looks = std::array<std::int64_t, kLooks>;
  static std::int64_t median(Looks looks);

  Looks first_{}, last_{};  // the first looks after the last comparison, and the latest ones
  std::uint32_t looks_ = 0;
  std::uint32_t rest_ = 0;  // number of looks after the first ones whose change does not count
};

}  // namespace weft
