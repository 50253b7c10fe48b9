// The learner's trials: what they cost, what they may cost, and which it puts off or breaks off.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "learner_program.h"
#include "select/learner.h"

namespace weft {
namespace {

TEST(Learner, ASlowVariantCostsLessThanOnePerCentOfARun) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(4, variants_of({10, 11, 30, 10}));
  std::int64_t least = 0;
  while (program.now_ns() < 10'000'000'000) {
    program.call(call_class);
    least += 10'200'000;
  }
  const auto found = program.learner(call_class).found();
  EXPECT_LT(found.trials_cost_ns, 100'000'000);
  EXPECT_LT(program.now_ns() - least, 150'000'000);
}

TEST(Learner, FirstTrialsThatAreAlwaysBrokenOffEnd) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(4, variants_of({10, 11, 30, 10}));
  int slow = 0;
  for (int phase = 0; phase < 500; ++phase) {
    // The first stage of the trials takes eight calls after the one that begins it.
    for (int call = 0; call < 8; ++call) slow += program.call(call_class) == 2 ? 1 : 0;
    program.interrupt(call_class);
  }
  EXPECT_GT(slow, 0);
  EXPECT_LT(slow, 40);
}

// The cost of trials compared with the variant in use, in a program that alternates between two
// phases and is learnt repeatedly: of all trials, and of the first calls on trial.
struct Cost {
  std::int64_t all_ns = 0, first_ns = 0, elapsed_ns = 0;
};
Cost cost_in_phases(double budget_percent) {
  SimulatedProgram program(2, budget_percent);
  std::uint32_t phase = 0;
  const int call_class = program.add_call_class(4, [&](int rank, int variant, std::uint32_t call) {
    const std::int64_t ms[] = {10, 12, 25, 13};
    return with_noise((phase % 2 + 1) * ms[variant] * 1'000'000, rank, call);
  });
  Cost cost;
  for (phase = 0; phase < 40; ++phase) {
    for (int call = 0; call < 200; ++call) {
      program.call(call_class);
      const auto found = program.learner(call_class).found();
      if (found.calls_on_trial <= Learner::kFreeSlots) cost.first_ns = found.trials_cost_ns;
    }
  }
  while (program.learner(call_class).is_learning()) program.call(call_class);
  cost.all_ns = program.learner(call_class).found().trials_cost_ns;
  cost.elapsed_ns = program.now_ns();
  EXPECT_EQ(program.budget(0).spent_ns(), cost.all_ns);
  return cost;
}

TEST(Learner, TrialsCostNoMoreThanTheBudgetOnceTheFirstCallsAreTried) {
  const auto percent_of = [](const Cost& cost) {
    return 100.0 * static_cast<double>(cost.all_ns - cost.first_ns) /
           static_cast<double>(cost.elapsed_ns);
  };
  for (const double percent : {0.05, 0.1, 0.2}) {
    const Cost cost = cost_in_phases(percent);
    EXPECT_GT(cost.first_ns, 0);
    EXPECT_LE(percent_of(cost), percent);
    EXPECT_GT(percent_of(cost_in_phases(100)), percent);
  }
}

TEST(Learner, WhatTheBudgetPutsOffIsTriedLater) {
  SimulatedProgram program;
  // The variants are so similar that all are tried to the end, and so different that this has a
  // cost.
  const int call_class = program.add_call_class(6, variants_of({100, 130, 120, 120, 110, 110}));
  for (int call = 0; call < 60; ++call) program.call(call_class);
  const auto early = program.learner(call_class).found();
  EXPECT_TRUE(early.settled);
  EXPECT_EQ(early.calls_on_trial, 18u);  // one round and two more, with all variants
  for (int call = 0; call < 5000; ++call) program.call(call_class);
  const auto late = program.learner(call_class).found();
  EXPECT_GT(late.calls_on_trial, early.calls_on_trial);
  EXPECT_EQ(late.variant, 0);
  EXPECT_LE(late.trials_cost_ns, program.now_ns() / 100);
}

// The class keeps the static rule's variant, which is not the result of trials.
TEST(Learner, WhatIsPutOffBeforeAnythingWasTriedIsNotSettled) {
  SimulatedProgram program(2, 1e-9);
  Learner::Settings settings;
  settings.has_free_slots = false;
  program.budget(0).spend(1'000'000'000);
  const int call_class = program.add_call_class(3, variants_of({10, 12, 8}), settings);
  for (int call = 0; call < 5000; ++call) EXPECT_EQ(program.call(call_class), 0);
  EXPECT_GT(program.comparisons(), 2);
  EXPECT_FALSE(program.learner(call_class).found().settled);
}

TEST(Learner, WhatIsTriedAfterItWasPutOffIsSettled) {
  SimulatedProgram program(2, 1);
  Learner::Settings settings;
  settings.has_free_slots = false;
  program.budget(0).spend(50'000'000);
  const int call_class = program.add_call_class(3, variants_of({10, 12, 8}), settings);
  for (int call = 0; call < 100; ++call) EXPECT_EQ(program.call(call_class), 0);
  for (int call = 0; call < 5000; ++call) program.call(call_class);
  EXPECT_TRUE(program.learner(call_class).found().settled);
  EXPECT_EQ(program.call(call_class), 2);
}

// What one rank has spent on other communicators counts for all ranks.
TEST(Learner, TheBudgetIsThatOfTheProcessThatHasSpentMost) {
  for (const bool spent : {false, true}) {
    SimulatedProgram program;
    if (spent) program.budget(1).spend(3'600'000'000'000);
    const int call_class = program.add_call_class(6, variants_of({100, 130, 120, 120, 110, 110}));
    for (int call = 0; call < 5000; ++call) program.call(call_class);
    const auto found = program.learner(call_class).found();
    EXPECT_EQ(found.calls_on_trial == 0u, spent);
    EXPECT_EQ(found.settled, !spent);
  }
}

// Checks that a call class keeps the static rule's variant, or a variant known from an earlier run,
// even if others are faster.
void expect_nothing_tried(SimulatedProgram& program, Learner::Settings settings) {
  const int rules = program.add_call_class(3, variants_of({10, 5, 5}), settings);
  settings.known = {{2, 8'000'000}};
  const int known = program.add_call_class(3, variants_of({10, 5, 50}), settings);
  for (int call = 0; call < 300; ++call) {
    EXPECT_EQ(program.call(rules), 0);
    EXPECT_EQ(program.call(known), 2);
  }
}

// Each of the communicators has free slots of its own.
TEST(Learner, AProgramThatMakesCommunicatorsAgainAndAgainTriesSeldom) {
  SimulatedProgram program;
  for (int communicator = 0; communicator < 200; ++communicator) {
    program.begin_communicator();
    const int call_class = program.add_call_class(5, variants_of({10, 12, 15, 18, 12}));
    for (int call = 0; call < 60; ++call) program.call(call_class);
    if (communicator == 1) {
      EXPECT_GT(program.learner(call_class).found().calls_on_trial, 0u);
    }
  }
  const auto cost_ns = static_cast<double>(program.budget(0).spent_ns());
  EXPECT_LE(cost_ns, 0.06 * static_cast<double>(program.now_ns()));
}

TEST(Learner, WithoutABudgetWhatIsKnownIsTakenAndNothingTried) {
  SimulatedProgram program(2, 0);
  Learner::Settings settings;
  expect_nothing_tried(program, settings);
}

TEST(Learner, TriesNothingWhereItMayNot) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.tries = false;
  expect_nothing_tried(program, settings);
}

// What was broken off may be tried again without using the budget.
TEST(Learner, WhatWasBrokenOffIsNotCounted) {
  SimulatedProgram program(2, 0.0001);
  const int one = program.add_call_class(8, variants_of({10, 6, 12, 12, 12, 12, 12, 12}));
  const int other = program.add_call_class(3, variants_of({10, 12, 6}));
  for (int call = 0; call < 20; ++call) program.call(one);  // during its trials
  EXPECT_FALSE(program.learner(one).found().settled);
  for (int call = 0; call < 150; ++call) program.call(other);
  for (int call = 0; call < 60; ++call) program.call(one);
  EXPECT_EQ(program.call(one), 1);
}

// Otherwise a call class whose trials never end would use up the budget of all.
TEST(Learner, WhatWasBrokenOffCostsNoMoreThanWasTried) {
  for (const int before : {1, 8}) {
    SimulatedProgram program(2, 100);
    std::int64_t factor = 1;
    const int one = program.add_call_class(6, [&](int rank, int variant, std::uint32_t call) {
      return variants_of({10, 13, 12, 12, 11, 10})(rank, variant, call) * factor;
    });
    for (int call = 0; call < 2000; ++call) program.call(one);
    const int other = program.add_call_class(2, variants_of({10, 10}));
    const auto learner = [&] { return program.learner(one).found(); };
    const auto on_trial = learner().calls_on_trial;
    const auto spent_ns = program.budget(0).spent_ns(), cost_ns = learner().trials_cost_ns;
    factor = 3;  // so that it is tried again
    while (learner().calls_on_trial < on_trial + static_cast<std::uint64_t>(before))
      program.call(one);
    const auto in_full_ns = program.budget(0).spent_ns() - spent_ns;
    EXPECT_GT(in_full_ns, 0);
    for (int call = 0; call < 100; ++call) program.call(other);
    program.call(one);  // its trials begin anew
    const auto broken_off_ns = learner().trials_cost_ns - cost_ns;
    EXPECT_GT(broken_off_ns, 0);
    EXPECT_LE(broken_off_ns, in_full_ns * before / 12);
    EXPECT_EQ(program.budget(0).spent_ns() - spent_ns,
              in_full_ns + broken_off_ns + program.learner(other).found().trials_cost_ns);
  }
}

// A change long after the class has settled is a change of the program. Then no slots are free.
TEST(Learner, WhatIsPutOffIsNotTakenForMisledWhenItChangesLater) {
  SimulatedProgram program(2, 0.001);
  std::int64_t factor = 1;
  const int call_class = program.add_call_class(5, [&](int rank, int variant, std::uint32_t call) {
    return variants_of({10, 13, 12, 12, 11})(rank, variant, call) * factor;
  });
  for (int call = 0; call < 1000; ++call) program.call(call_class);
  const auto on_trial = program.learner(call_class).found().calls_on_trial;
  factor = 3;
  for (int call = 0; call < 1000; ++call) program.call(call_class);
  EXPECT_EQ(program.learner(call_class).found().calls_on_trial, on_trial);
}

}  // namespace
}  // namespace weft
