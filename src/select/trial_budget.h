// TrialBudget: the cost that all trials of a process may have together, as a share of the program's
// run time. The cost of a trial is the time that it takes beyond that of the variant in use.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class TrialBudget {
 public:
  // percent: the share of the time since began_ns that trials may cost; that time is measured by
  // the clock of the calls.
  TrialBudget(double percent, std::int64_t began_ns) : percent_(percent), began_ns_(began_ns) {}

  bool is_none() const { return percent_ <= 0; }
  // Returns whether the budget allows trials to have cost cost_ns by the time elapsed_ns. It
  // depends on nothing else, so ranks that agree on both get the same answer.
  bool allows(std::int64_t cost_ns, std::int64_t elapsed_ns) const {
    return static_cast<double>(cost_ns) * 100 <= percent_ * static_cast<double>(elapsed_ns);
  }
  // Returns whether a call class may still make its first trials whatever they cost, given what
  // trials on other communicators cost. Without this limit a program that keeps making
  // communicators would try variants most of the time.
  bool has_free_slots(std::int64_t cost_elsewhere_ns, std::int64_t elapsed_ns) const {
    return allows(cost_elsewhere_ns / kFree, elapsed_ns);
  }

  // The functions below return or change the figures of this rank alone.
  std::int64_t elapsed_ns(std::int64_t now_ns) const { return now_ns - began_ns_; }
  std::int64_t spent_ns() const { return spent_ns_.load(std::memory_order_relaxed); }
  void spend(std::int64_t ns) { spent_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kFree = 5;  // first trials may cost this many times the budget

  const double percent_;
  const std::int64_t began_ns_;
  std::atomic<std::int64_t> spent_ns_{0};  // cost on all communicators
};

}  // namespace weft
