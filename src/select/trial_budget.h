// TrialBudget: what all trials of a process may cost together, as a share of the program's run
// time. A trial makes a call with an engine and algorithm that may be slower. Its cost is its time
// beyond that of the variant in use.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class TrialBudget {
 public:
  // percent: the share of the time since began_ns that trials may cost. began_ns: a time of the
  // clock by which calls are timed.
  TrialBudget(double percent, std::int64_t began_ns) : percent_(percent), began_ns_(began_ns) {}

  bool is_none() const { return percent_ <= 0; }
  // Returns whether trials may have cost cost_ns when elapsed_ns have passed. The answer depends on
  // nothing else, so ranks that agree on both numbers get the same one.
  bool allows(std::int64_t cost_ns, std::int64_t elapsed_ns) const {
    return static_cast<double>(cost_ns) * 100 <= percent_ * static_cast<double>(elapsed_ns);
  }
  // Returns whether a call class may still make its first trials whatever they cost, given what
  // trials on other communicators have cost. Without this limit a program that keeps making
  // communicators would try variants most of the time.
  bool has_free_slots(std::int64_t cost_elsewhere_ns, std::int64_t elapsed_ns) const {
    return allows(cost_elsewhere_ns / kFree, elapsed_ns);
  }

  // The functions below are about this rank alone.
  std::int64_t elapsed_ns(std::int64_t now_ns) const { return now_ns - began_ns_; }
  std::int64_t spent_ns() const { return spent_ns_.load(std::memory_order_relaxed); }
  void spend(std::int64_t ns) { spent_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kFree = 5;  // the first trials may cost this many times the budget

  const double percent_;
  const std::int64_t began_ns_;
  std::atomic<std::int64_t> spent_ns_{0};  // what trials on all communicators have cost so far
};

}  // namespace weft
