// The learner when calls of one class repeat in a cycle, such as exchange and reduction in turn: it
// must tell the calls of the cycle apart, and notice when they change.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "learner_program.h"
#include "select/learner.h"

namespace weft {
namespace {

// Returns the times of calls that repeat in a cycle: ms[position][variant].
SimulatedProgram::Times in_cycle(std::vector<std::vector<std::int64_t>> ms) {
  return [ms](int rank, int variant, std::uint32_t call) {
    const auto& of_variants = ms[call % ms.size()];
    return with_noise(of_variants[static_cast<std::size_t>(variant)] * 1'000'000, rank, call);
  };
}

TEST(Learner, CallsThatTakeTurnsAreToldApart) {
  const std::vector<std::vector<std::int64_t>> ms = {{10, 12, 6},  {30, 20, 40}, {20, 20, 21},
                                                     {50, 40, 30}, {5, 4, 3},    {9, 9, 2}};
  for (std::size_t cycle = 2; cycle <= ms.size(); ++cycle)
    for (const bool blocking : {false, true}) {
      SimulatedProgram program;
      Learner::Settings settings;
      settings.by_own_time = blocking;
      const int call_class = program.add_call_class(
          3, in_cycle({ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(cycle)}), settings);
      const auto call = [&] {
        return blocking ? program.blocking_call(call_class, 1'000'000) : program.call(call_class);
      };
      for (std::size_t i = 0; i < 200 * cycle; ++i) call();
      ASSERT_EQ(program.learner(call_class).cycle(), cycle);
      const int winners[] = {2, 1, 1, 2, 2, 2};
      int others = 0;  // counts calls in trials that were postponed
      for (std::size_t i = 0; i < 1000 * cycle; ++i) others += call() != winners[i % cycle];
      EXPECT_LT(others, static_cast<int>(9 * cycle));
      for (std::size_t i = 0; i < cycle; ++i) EXPECT_EQ(call(), winners[i]) << cycle;
      for (std::size_t position = 0; position < cycle; ++position) {
        const auto found = program.learner(call_class).found(position);
        EXPECT_TRUE(found.settled);
        EXPECT_EQ(found.variant, winners[position]);
      }
    }
}

// The cycle's middle call takes 10 us, too short to hide anything, so nothing is tried for it.
TEST(Learner, OfACycleOnlyWhatIsLongIsTried) {
  SimulatedProgram program;
  std::map<int, int> taken;
  const int call_class = program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
    const std::int64_t ms[] = {10, 12, 6};
    if (call % 3 == 1) ++taken[variant];
    return call % 3 == 1 ? std::int64_t{10'000} : with_noise(ms[variant] * 1'000'000, rank, call);
  });
  while (program.learner(call_class).cycle() == 1) program.call(call_class);
  taken.clear();
  for (int call = 0; call < 600; ++call) program.call(call_class);
  EXPECT_EQ(taken.size(), 1u);
  while (program.learner(call_class).found().calls % 3 != 0) program.call(call_class);
  for (const int winner : {2, 0, 2}) EXPECT_EQ(program.call(call_class), winner);
  const auto found = program.learner(call_class).found(1);
  EXPECT_EQ(found.median_ns[0], 10'000);  // measured before the trials
  EXPECT_EQ(found.pairs, 0);
}

// One call more than usual shifts the cycle: from then on each position has the other's work. The
// learner must find the cycle again.
TEST(Learner, ACycleThatIsOutOfStepIsFoundAnew) {
  SimulatedProgram program;
  std::uint32_t skipped = 0;
  const std::int64_t ms[][3] = {{10, 12, 6}, {30, 20, 40}};
  const int call_class = program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
    return with_noise(ms[(call + skipped) % 2][variant] * 1'000'000, rank, call);
  });
  for (int call = 0; call < 200; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
  EXPECT_EQ(program.call(call_class), 1);
  skipped = 1;
  for (int call = 0; call < 3000; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 1);
  EXPECT_EQ(program.call(call_class), 2);
}

// While the learner looks at a cycle anew, it keeps the old result, and each call takes the variant
// of the position that it resembles most.
TEST(Learner, ACycleThatIsLookedAtAnewIsKeptUntilThen) {
  SimulatedProgram program;
  std::int64_t hiccup_ns = 0;
  const std::int64_t ms[][3] = {{10, 12, 6}, {30, 20, 40}};
  const int call_class = program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
    return with_noise(ms[call % 2][variant] * 1'000'000, rank, call) + hiccup_ns;
  });
  for (int call = 0; call < 300; ++call) program.call(call_class);
  const Learner& learner = program.learner(call_class);
  const auto on_trial = learner.found().calls_on_trial;
  hiccup_ns = 50'000'000;
  for (int call = 0; call < 200 && !learner.is_watching(); ++call) program.call(call_class);
  hiccup_ns = 0;
  ASSERT_TRUE(learner.is_watching());
  for (std::uint64_t call = learner.found().calls; call < 1000; ++call) {
    const int variant = program.call(call_class);
    if (learner.found().calls_on_trial > on_trial) break;
    EXPECT_EQ(variant, call % 2 ? 1 : 2) << call;
    EXPECT_EQ(learner.cycle(), 2u);
    EXPECT_EQ(learner.found(0).variant, 2);
    EXPECT_EQ(learner.found(1).variant, 1);
    EXPECT_GT(learner.found(1).pairs, 0);
  }
  EXPECT_GT(learner.found().calls_on_trial, on_trial);
}

TEST(Learner, ACycleThatEndsIsLearntAboutAsOne) {
  for (const double percent : {1, 100}) {
    SimulatedProgram program(2, percent);
    bool is_over = false;
    const std::int64_t ms[][3] = {{10, 12, 6}, {30, 20, 40}, {30, 5, 20}};
    const int call_class =
        program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
          return with_noise(ms[is_over ? 2 : call % 2][variant] * 1'000'000, rank, call);
        });
    for (int call = 0; call < 200; ++call) program.call(call_class);
    is_over = true;
    for (int call = 0; call < 3000; ++call) program.call(call_class);
    EXPECT_EQ(program.learner(call_class).cycle(), 1u);
    for (int call = 0; call < 10; ++call) EXPECT_EQ(program.call(call_class), 1);
  }
}

// Random times of two sizes are not a cycle; nor is a single long call.
TEST(Learner, WhatHasNoPatternIsNoCycle) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SimulatedProgram program;
    const int call_class = program.add_call_class(3, [&](int, int variant, std::uint32_t call) {
      const std::int64_t ms[] = {10, 12, 6};
      const std::uint32_t mixed = (call + 1000 * seed) * 2654435761u >> 16;
      const std::int64_t factor = seed % 2 ? 1 + mixed % 3 : mixed % 16 == 0 ? 8 : 1;
      return ms[variant] * factor * 1'000'000;
    });
    for (int call = 0; call < 500; ++call) {
      program.call(call_class);
      EXPECT_EQ(program.learner(call_class).cycle(), 1u) << seed;
    }
  }
}

TEST(Learner, ACycleThatIsKnownIsTakenFromTheFirstCall) {
  for (const bool conditional : {false, true}) {
    SimulatedProgram program;
    Learner::Settings settings;
    settings.known = {{2, 6'100'000}, {1, 20'300'000}};
    if (conditional) settings.conditional = 2;
    const int call_class =
        program.add_call_class(3, in_cycle({{10, 12, 6}, {30, 20, 40}}), settings);
    if (conditional)
      for (int call = 0; call < 10; ++call) program.call(call_class);
    for (int call = 0; call < 600; ++call) EXPECT_EQ(program.call(call_class), call % 2 ? 1 : 2);
    EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
    EXPECT_TRUE(program.learner(call_class).found(1).settled);
  }
}

TEST(Learner, ACycleThatIsKnownAndOutOfStepIsFoundAnew) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.known = {{1, 20'300'000}, {2, 6'100'000}};
  const int call_class = program.add_call_class(3, in_cycle({{10, 12, 6}, {30, 20, 40}}), settings);
  for (int call = 0; call < 300; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
  EXPECT_EQ(program.call(call_class), 1);
}

TEST(Learner, TheLongestPositionIsTriedFirst) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, in_cycle({{5, 4, 3}, {40, 30, 50}}));
  while (program.learner(call_class).found().calls_on_trial == 0) program.call(call_class);
  EXPECT_EQ(program.learner(call_class).found().calls % 2, 0u);
}

// Single calls that take longer while the program begins do not delay the trials.
TEST(Learner, NoiseDoesNotKeepASiteWaiting) {
  for (const std::uint32_t late : {1, 2, 3}) {
    SimulatedProgram program;
    const int call_class =
        program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
          return variants_of({10, 12, 6})(rank, variant, call) * (call == late ? 3 : 1);
        });
    for (int call = 0; call < 16; ++call) program.call(call_class);
    EXPECT_GT(program.learner(call_class).found().calls_on_trial, 0u) << late;
    for (int call = 0; call < 150; ++call) program.call(call_class);
    EXPECT_EQ(program.learner(call_class).cycle(), 1u);
    EXPECT_EQ(program.call(call_class), 2);
  }
}

}  // namespace
}  // namespace weft
