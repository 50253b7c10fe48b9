// Programs of a few ranks in virtual time, each rank with a learner for each site.
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

// The ranks of a program, in step; each has a learner for each site and a clock of its own.
class Program {
 public:
  using Times = std::function<std::int64_t(int rank, int way, std::uint32_t call)>;

  explicit Program(int ranks = 2, double budget_percent = 1)
      : clocks_(static_cast<std::size_t>(ranks)), turns_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) budgets_.emplace_back(budget_percent, 0);
  }

  int add_site(std::size_t ways, Times period_ns, const Learner::Settings& settings = {}) {
    auto& site = sites_.emplace_back();
    site.period_ns = std::move(period_ns);
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank)
      site.learners.push_back(std::make_unique<Learner>(ways, kNative, settings, budgets_[rank]));
    return static_cast<int>(sites_.size()) - 1;
  }

  // The sites that are added from now on are those of another communicator.
  void begin_communicator() { turns_.assign(clocks_.size(), {}); }

  // A blocking call of the site, and computation of so long after it. late_ns: how much later than
  // they could be ranks come to it.
  int blocking_call(int number, std::int64_t computation_ns,
                    std::vector<std::int64_t> late_ns = {}) {
    late_ns.resize(clocks_.size());
    const std::int64_t last_ns = *std::max_element(late_ns.begin(), late_ns.end());
    const int way = call(number);
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
      Learner& learner = *sites_[static_cast<std::size_t>(number)].learners[rank];
      if (learner.wants_own_time()) learner.took(last_call_ns_ + last_ns - late_ns[rank]);
    }
    for (auto& clock : clocks_) clock += last_ns + computation_ns;
    return way;
  }

  // One call of the site, and all that follows up to the next. in_flight: calls before it that have
  // not been completed.
  int call(int number, int in_flight = 0) {
    Site& site = sites_[static_cast<std::size_t>(number)];
    int way = -1;
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
      Learner& learner = *site.learners[rank];
      auto step = learner.next(clocks_[rank], in_flight, turns_[rank]);
      if (!step) {
        if (site.looks_too_early > 0)
          look_later(site);
        else
          compare(site);
        step = learner.next(clocks_[rank], in_flight, turns_[rank]);
      }
      EXPECT_TRUE(step.has_value());
      if (step->compare && static_cast<int>(rank) == without_worker_) learner.say_unable();
      if (rank > 0) {
        EXPECT_EQ(step->way, way) << "ranks take different ways";
      }
      way = step->way;
    }
    const std::int64_t began = now_ns();
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank)
      clocks_[rank] += site.period_ns(static_cast<int>(rank), way, site.calls);
    const std::int64_t latest = *std::max_element(clocks_.begin(), clocks_.end());
    last_call_ns_ = latest - began;
    for (auto& clock : clocks_) clock = latest;  // a collective of all
    ++site.calls;
    return way;
  }

  const Learner& learner(int site) const {
    return *sites_[static_cast<std::size_t>(site)].learners.front();
  }
  std::int64_t now_ns() const { return clocks_.front(); }
  TrialBudget& budget(std::size_t rank) { return budgets_[rank]; }
  // A rank lags behind whenever the ranks come to the site's next such looks.
  void lag_behind(int site, int looks) {
    sites_[static_cast<std::size_t>(site)].looks_too_early = looks;
  }
  void leave_without_worker(int rank) { without_worker_ = rank; }
  int comparisons() const { return comparisons_; }

 private:
  struct Site {
    Times period_ns;
    std::vector<std::unique_ptr<Learner>> learners;
    std::uint32_t calls = 0;
    int looks_too_early = 0;
  };

  static void look_later(Site& site) {
    --site.looks_too_early;
    for (const auto& learner : site.learners) learner->agreed_to_look_later();
  }

  void compare(Site& site) {
    ++comparisons_;
    Learner::Words greatest = site.learners.front()->words();
    for (const auto& learner : site.learners)
      for (std::size_t i = 0; i < greatest.size(); ++i)
        greatest[i] = std::max(greatest[i], learner->words()[i]);
    for (const auto& learner : site.learners) learner->agreed(greatest);
  }

  std::vector<std::int64_t> clocks_;
  std::int64_t last_call_ns_ = 0;
  int comparisons_ = 0;
  int without_worker_ = -1;  // a rank that cannot take the conditional way
  std::vector<TrialTurn> turns_;
  std::deque<TrialBudget> budgets_;
  std::deque<Site> sites_;
};

// A few per cent, from call and rank.
inline std::int64_t with_noise(std::int64_t ns, int rank, std::uint32_t call) {
  const std::uint32_t mixed =
      (call * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u) >> 16;
  return ns + ns * static_cast<std::int64_t>(mixed % 40) / 1000;
}

inline Program::Times ways_of(std::vector<std::int64_t> ms) {
  return [ms](int rank, int way, std::uint32_t call) {
    return with_noise(ms[static_cast<std::size_t>(way)] * 1'000'000, rank, call);
  };
}

}  // namespace weft
