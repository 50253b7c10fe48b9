// Which candidate is measured when, and which one wins, with invented times.
#include "select/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace weft {
namespace {

constexpr std::int64_t kMs = 1'000'000;

struct Course {
  std::int64_t elapsed_ns = 0;
  std::map<std::size_t, int> trials;  // number of trials of each candidate
};

// Runs trials in which the candidates take these times, the first time ten times as long.
Course run(Trials& trials, const std::vector<std::int64_t>& each_ns, std::int64_t elapsed_ns = 0) {
  Course course{elapsed_ns, {}};
  while (const auto trial = trials.next(course.elapsed_ns)) {
    const bool cold = course.trials[trial->candidate]++ == 0;
    const std::int64_t took = each_ns[trial->candidate] * (cold ? 10 : 1);
    course.elapsed_ns += took * (trial->warm_ups + trial->repetitions);
    trials.add(*trial, took);
  }
  return course;
}

TEST(Trials, TheFastestWins) {
  Trials trials(3, 10 * kMs);
  run(trials, {1'000, 700, 800});
  EXPECT_TRUE(trials.conclusive());
  EXPECT_EQ(trials.best(), 1u);
  EXPECT_EQ(trials.least_ns(0), 1'000);
  EXPECT_EQ(trials.least_ns(1), 700);
}

TEST(Trials, TheRuleStaysUnlessAnotherIsClearlyFaster) {
  for (const auto& [other_ns, best] : {std::pair{950, 0u}, {905, 0u}, {900, 1u}, {500, 1u}}) {
    Trials trials(2, 10 * kMs);
    run(trials, {1'000, other_ns});
    EXPECT_EQ(trials.best(), best) << other_ns;
  }
}

TEST(Trials, TheFirstTimeOfEachDoesNotCount) {
  Trials trials(2, 10 * kMs);
  trials.add({0, 1, 0}, 100);
  trials.add({1, 1, 0}, 10);
  EXPECT_FALSE(trials.conclusive());
  trials.add({0, 1, 0}, 100);
  trials.add({1, 1, 0}, 200);
  EXPECT_TRUE(trials.conclusive());
  EXPECT_EQ(trials.best(), 0u);
}

TEST(Trials, TheLeastOfATimeCounts) {
  Trials trials(2, 10 * kMs);
  for (const std::int64_t ns : {1, 500, 9'000, 300, 310}) {
    trials.add({0, 1, 0}, 600);
    trials.add({1, 1, 0}, ns);
  }
  EXPECT_EQ(trials.best(), 1u);
  EXPECT_EQ(trials.least_ns(1), 300);
}

TEST(Trials, OneLuckyMomentDoesNotDecide) {
  Trials trials(3, 10 * kMs);
  for (const std::int64_t ns : {1, 500, 510, 100, 520, 530}) {
    trials.add({0, 1, 0}, 400);
    trials.add({1, 1, 0}, ns);
    trials.add({2, 1, 0}, 350);
  }
  EXPECT_EQ(trials.best(), 2u);
}

TEST(Trials, WhoIsFarBehindIsMeasuredNoMore) {
  Trials trials(3, 100 * kMs);
  auto course = run(trials, {1'000, 5'000, 900});
  EXPECT_EQ(course.trials[1], 2);
  EXPECT_GT(course.trials[0], 5);
  EXPECT_GT(course.trials[2], 5);
}

TEST(Trials, TheRuleIsAlwaysMeasured) {
  Trials trials(2, 100 * kMs);
  auto course = run(trials, {5'000, 1'000});
  EXPECT_GT(course.trials[0], 5);
}

TEST(Trials, ShortOnesAreRepeated) {
  Trials trials(2, 100 * kMs);
  int most = 0;
  while (const auto trial = trials.next(0)) {
    most = std::max(most, trial->repetitions);
    trials.add(*trial, 100);
  }
  EXPECT_GT(most, 10);
}

// Warm-ups matter to short calls, which find in the caches what the last candidate left there.
TEST(Trials, AreWarmedUpOnceMeasured) {
  for (const auto& [each_ns, warm_ups] :
       {std::pair{100L, 4}, {6'000L, 3}, {60'000L, 2}, {300'000L, 0}}) {
    Trials trials(2, 100 * kMs);
    std::vector<int> seen;
    for (int i = 0; i < 6; ++i) {
      const auto trial = trials.next(0);
      ASSERT_TRUE(trial);
      seen.push_back(trial->warm_ups);
      trials.add(*trial, each_ns);
    }
    EXPECT_EQ(seen, (std::vector<int>{0, 0, 0, 0, warm_ups, warm_ups})) << each_ns;
  }
}

TEST(Trials, LeaveAQuarterOfTheBudget) {
  for (const std::int64_t each_ns : {1'000L, 100'000L, 600'000L}) {
    Trials trials(12, 10 * kMs);
    const auto course = run(trials, std::vector<std::int64_t>(12, each_ns));
    EXPECT_LE(course.elapsed_ns, 75 * kMs / 10) << each_ns;
  }
}

TEST(Trials, WithoutTimeNothingIsMeasuredAndTheRuleStays) {
  Trials trials(3, 10 * kMs);
  const auto course = run(trials, {1'000, 10, 10}, 8 * kMs);
  EXPECT_TRUE(course.trials.empty());
  EXPECT_FALSE(trials.conclusive());
  EXPECT_EQ(trials.best(), 0u);
}

// Adds these times for each candidate, that of the rule first.
Trials measured(const std::vector<std::vector<std::int64_t>>& times_ns) {
  Trials trials(times_ns.size(), 10 * kMs);
  for (std::size_t i = 0; i < times_ns.size(); ++i) {
    trials.add({i, 1, 0}, 10'000);  // the first trial is cold
    for (const std::int64_t ns : times_ns[i]) trials.add({i, 1, 0}, ns);
  }
  return trials;
}

TEST(Trials, AreCertainWhereTheMachineWasQuiet) {
  EXPECT_TRUE(measured({{600, 610, 605, 612}, {900}}).certain());
  EXPECT_TRUE(measured({{600, 610, 605, 612}, {580, 590, 585, 620}}).certain());
}

TEST(Trials, AreNotCertainWhereAnotherThanTheRulesHasWon) {
  const Trials won = measured({{600, 610, 605, 612}, {400, 410, 405, 412}});
  EXPECT_EQ(won.best(), 1u);
  EXPECT_FALSE(won.certain());
}

TEST(Trials, AreNotCertainWhereAnotherMightHaveWon) {
  // The rule's candidate is usually slower than the other, but equally fast at its best.
  EXPECT_FALSE(measured({{600, 710, 805, 812}, {600, 601, 602, 603}}).certain());
}

TEST(Trials, AreNotCertainWithoutEnoughTimesOfAll) {
  EXPECT_FALSE(measured({{600, 601, 602}, {900}}).certain());
  EXPECT_FALSE(measured({{600, 601, 602, 603}, {900}, {}}).certain());
  EXPECT_FALSE(measured({{600, 601, 602, 603}, {400, 401}}).certain());
}

TEST(Trials, WhatWasNotMeasuredOftenEnoughCannotWin) {
  Trials trials(2, 10 * kMs);
  trials.add({0, 1, 0}, 400);
  trials.add({0, 1, 0}, 400);
  trials.add({1, 1, 0}, 10);
  EXPECT_FALSE(trials.conclusive());
  EXPECT_EQ(trials.best(), 0u);
}

TEST(Trials, WhoIsLeftOutIsNeverMeasuredAndPutsNothingInDoubt) {
  Trials trials(3, 100 * kMs);
  EXPECT_FALSE(trials.nothing_to_compare());
  trials.leave_out(1);
  const auto course = run(trials, {1'000, 10, 2'000});
  EXPECT_FALSE(course.trials.contains(1));
  EXPECT_GT(course.trials.at(2), 1);
  EXPECT_EQ(trials.best(), 0u);
  EXPECT_TRUE(trials.certain());
  trials.leave_out(2);
  EXPECT_TRUE(trials.nothing_to_compare());
  EXPECT_FALSE(trials.next(0));
}

TEST(Trials, EndWithinAnyBudget) {
  Trials trials(4, INT64_MAX / 8);
  EXPECT_LT(run(trials, {1'000, 1'000, 1'000, 1'000}).elapsed_ns, 10 * kMs);
}

}  // namespace
}  // namespace weft
