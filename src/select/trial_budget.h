// TrialBudget: what all trials of a process may cost together, as a share of the time that the
// program has run. What a trial costs is what it takes more than the variant in use would have
// taken.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class TrialBudget {
 public:
  // percent: of the time since began_ns, which is on the clock of the calls.
  TrialBudget(double percent, std::int64_t began_ns) : percent_(percent), began_ns_(began_ns) {}

  bool is_none() const { return percent_ <= 0; }
  // Returns whether trials may have cost so much after so long. It depends on nothing else, so that
  // ranks that agree on both get the same answer.
  bool allows(std::int64_t cost_ns, std::int64_t elapsed_ns) const {
    return static_cast<double>(cost_ns) * 100 <= percent_ * static_cast<double>(elapsed_ns);
  }
  // Returns whether a call class's first slots are still free, given the cost of trials on other
  // communicators: otherwise a program that makes new communicators again and again would try most
  // of the time.
  bool has_free_slots(std::int64_t cost_elsewhere_ns, std::int64_t elapsed_ns) const {
    return allows(cost_elsewhere_ns / kFree, elapsed_ns);
  }

  // These are this rank's own figures.
  std::int64_t elapsed_ns(std::int64_t now_ns) const { return now_ns - began_ns_; }
  std::int64_t spent_ns() const { return spent_ns_.load(std::memory_order_relaxed); }
  void spend(std::int64_t ns) { spent_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kFree = 5;  // times the budget

  const double percent_;
  const std::int64_t began_ns_;
  std::atomic<std::int64_t> spent_ns_{0};  // on all communicators
};

}  // namespace weft
