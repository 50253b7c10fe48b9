// Simulated programs of a few ranks in virtual time; each rank has a learner for each call class.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "select/learner.h"

namespace weft {

inline constexpr int kNative = 1;

// A program whose ranks make the same calls; each has a clock, and a learner for each call class.
class SimulatedProgram {
 public:
  using Times = std::function<std::int64_t(int rank, int variant, std::uint32_t call)>;

  explicit SimulatedProgram(int ranks = 2, double budget_percent = 1)
      : clocks_(static_cast<std::size_t>(ranks)), turns_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) budgets_.emplace_back(budget_percent, 0);
  }

  int add_call_class(std::size_t variants, Times period_ns,
                     const Learner::Settings& settings = {}) {
    auto& call_class = call_classes_.emplace_back();
    call_class.period_ns = std::move(period_ns);
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank)
      call_class.learners.push_back(
          std::make_unique<Learner>(variants, kNative, settings, budgets_[rank]));
    return static_cast<int>(call_classes_.size()) - 1;
  }

  // Call classes that are added from now on belong to another communicator.
  void begin_communicator() { turns_.assign(clocks_.size(), {}); }

  // Makes a blocking call and computes for the given time after it. late_ns: by how much each rank
  // comes late to the call. kept_ns: by how much longer a variant keeps the last rank, which then
  // comes late to the next call.
  int blocking_call(
      int number, std::int64_t computation_ns, std::vector<std::int64_t> late_ns = {},
      const std::function<std::int64_t(int variant)>& kept_ns = [](int) { return 0; }) {
    late_ns.resize(clocks_.size());
    const std::int64_t last_ns = *std::max_element(late_ns.begin(), late_ns.end());
    const int variant = call(number);
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
      Learner& learner = *call_classes_[static_cast<std::size_t>(number)].learners[rank];
      const bool is_kept = rank + 1 == clocks_.size();
      if (learner.wants_own_time())
        learner.took(last_call_ns_ + last_ns - late_ns[rank] + (is_kept ? kept_ns(variant) : 0));
    }
    for (auto& clock : clocks_) clock += last_ns + computation_ns;
    return variant;
  }

  // Makes one call, whose time extends up to the next call. in_flight: number of calls before it
  // that are not complete.
  int call(int number, int in_flight = 0) {
    CallClass& call_class = call_classes_[static_cast<std::size_t>(number)];
    int variant = -1;
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
      Learner& learner = *call_class.learners[rank];
      auto step = learner.next(clocks_[rank], in_flight, turns_[rank]);
      if (!step) {
        if (call_class.looks_too_early > 0)
          look_later(call_class);
        else
          compare(call_class);
        step = learner.next(clocks_[rank], in_flight, turns_[rank]);
      }
      EXPECT_TRUE(step.has_value());
      if (step->compare && static_cast<int>(rank) == without_worker_) learner.say_unable();
      if (rank > 0) {
        EXPECT_EQ(step->variant, variant) << "ranks take different ways";
      }
      variant = step->variant;
    }
    const std::int64_t began = now_ns();
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank)
      clocks_[rank] += call_class.period_ns(static_cast<int>(rank), variant, call_class.calls);
    const std::int64_t latest = *std::max_element(clocks_.begin(), clocks_.end());
    last_call_ns_ = latest - began;
    for (auto& clock : clocks_) clock = latest;
    ++call_class.calls;
    return variant;
  }

  // Calls of another class come between those of this one.
  void interrupt(int number) {
    auto& learners = call_classes_[static_cast<std::size_t>(number)].learners;
    for (std::size_t rank = 0; rank < learners.size(); ++rank)
      learners[rank]->interrupt(turns_[rank]);
  }

  const Learner& learner(int call_class) const {
    return *call_classes_[static_cast<std::size_t>(call_class)].learners.front();
  }
  std::int64_t now_ns() const { return clocks_.front(); }
  TrialBudget& budget(std::size_t rank) { return budgets_[rank]; }
  // A rank lags behind in the class's next `looks` looks at the result of a comparison.
  void lag_behind(int call_class, int looks) {
    call_classes_[static_cast<std::size_t>(call_class)].looks_too_early = looks;
  }
  void leave_without_worker(int rank) { without_worker_ = rank; }
  int comparisons() const { return comparisons_; }

 private:
  struct CallClass {
    Times period_ns;
    std::vector<std::unique_ptr<Learner>> learners;
    std::uint32_t calls = 0;
    int looks_too_early = 0;
  };

  static void look_later(CallClass& call_class) {
    --call_class.looks_too_early;
    for (const auto& learner : call_class.learners) learner->agreed_to_look_later();
  }

  void compare(CallClass& call_class) {
    ++comparisons_;
    Learner::Words greatest = call_class.learners.front()->words();
    for (const auto& learner : call_class.learners)
      for (std::size_t i = 0; i < greatest.size(); ++i)
        greatest[i] = std::max(greatest[i], learner->words()[i]);
    for (const auto& learner : call_class.learners) learner->agreed(greatest);
  }

  std::vector<std::int64_t> clocks_;
  std::int64_t last_call_ns_ = 0;
  int comparisons_ = 0;
  int without_worker_ = -1;  // the rank that cannot take the conditional variant
  std::vector<TrialTurn> turns_;
  std::deque<TrialBudget> budgets_;
  std::deque<CallClass> call_classes_;
};

// Adds up to 4 %, computed from call and rank.
inline std::int64_t with_noise(std::int64_t ns, int rank, std::uint32_t call) {
  const std::uint32_t mixed =
      (call * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u) >> 16;
  return ns + ns * static_cast<std::int64_t>(mixed % 40) / 1000;
}

inline SimulatedProgram::Times variants_of(std::vector<std::int64_t> ms) {
  return [ms](int rank, int variant, std::uint32_t call) {
    return with_noise(ms[static_cast<std::size_t>(variant)] * 1'000'000, rank, call);
  };
}

}  // namespace weft
