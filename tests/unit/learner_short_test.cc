// The learner with classes whose calls follow each other after microseconds, always or for a while.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "learner_program.h"
#include "select/learner.h"

namespace weft {
namespace {

// For a class at rest one call in 64 is watched. Its comparisons take little of the time.
TEST(Learner, AtShortPeriodsNothingIsTriedThatNeedsAThread) {
  for (const std::int64_t period_ns : {500, 5'000, 19'000}) {
    SimulatedProgram program;
    const int call_class =
        program.add_call_class(3, [&](int, int, std::uint32_t) { return period_ns; });
    constexpr int kCalls = 200'000;
    int watched = 0;
    for (int call = 0; call < kCalls; ++call) {
      watched += program.learner(call_class).wants_time();
      EXPECT_EQ(program.call(call_class), 0);
    }
    EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
    EXPECT_LT(watched, kCalls / 50);  // includes the calls between a watch and its effect
    EXPECT_GT(program.comparisons(), 5);
    EXPECT_LT(program.comparisons(), kCalls / 2000 + 10);
  }
}

// Variants without a thread are compared after some time, at little cost; others are not tried.
TEST(Learner, AtShortPeriodsTheLibrarysVariantIsComparedWithThatOfCallers) {
  for (const std::int64_t period_ns : {500, 5'000, 12'000})
    for (const int fastest : {0, kNative, 2}) {
      SimulatedProgram program;
      Learner::Settings settings;
      settings.variants_of_short = 0b111;
      int met = 0, watched = 0;
      const int call_class = program.add_call_class(
          4,
          [&](int rank, int variant, std::uint32_t call) {
            met += variant == 3;
            return with_noise(variant == fastest ? period_ns : period_ns * 13 / 10, rank, call);
          },
          settings);
      for (int call = 0; call < 1500; ++call) EXPECT_EQ(program.call(call_class), 0);
      for (int call = 0; call < 200'000; ++call) {
        watched += program.learner(call_class).wants_time();
        program.call(call_class);
      }
      EXPECT_EQ(program.call(call_class), fastest);
      EXPECT_EQ(met, 0);
      const auto found = program.learner(call_class).found();
      EXPECT_TRUE(found.settled);
      EXPECT_LE(found.calls_on_trial, 64u * 27);
      EXPECT_LT(watched, 6000);
    }
}

// The library is the fastest, but sets something up in its first calls, which are long.
TEST(Learner, WhatIsShortOnlyAfterItsFirstCallsIsComparedAgain) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.variants_of_short = 0b111;
  std::map<std::pair<int, int>, int> made;
  const int call_class = program.add_call_class(
      3,
      [&](int rank, int variant, std::uint32_t call) {
        const bool is_first = made[{rank, variant}]++ < (variant == kNative ? 40 : 8);
        const std::int64_t us[] = {3, 2, 4};
        return is_first ? std::int64_t{40'000} : with_noise(us[variant] * 1000, rank, call);
      },
      settings);
  for (int call = 0; call < 500; ++call) program.call(call_class);
  EXPECT_FALSE(program.learner(call_class).has_result());
  EXPECT_EQ(program.call(call_class), 0);
  for (int call = 0; call < 500'000; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), kNative);
}

// Only the first calls of the rule's variant are long, and its challenger is compared with it
// meanwhile.
TEST(Learner, WhatLongFirstCallsFoundSaysNothingOfShortOnes) {
  SimulatedProgram program;
  std::map<std::pair<int, int>, int> made;
  const int call_class = program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
    const bool is_first = variant == 0 && made[{rank, variant}]++ < 20;
    return with_noise(is_first ? 60'000 : 3'000, rank, call);
  });
  bool was_other = false;
  for (int call = 0; call < 300; ++call) was_other = program.call(call_class) != 0 || was_other;
  EXPECT_TRUE(was_other);
  EXPECT_GT(program.learner(call_class).found().calls_on_trial, 0u);
  EXPECT_FALSE(program.learner(call_class).found().settled);
  EXPECT_FALSE(program.learner(call_class).has_result());
  EXPECT_EQ(program.learner(call_class).found().variant, 0);
  EXPECT_EQ(program.learner(call_class).found().won_ns, 0);
  for (int call = 0; call < 2000; ++call) EXPECT_EQ(program.call(call_class), 0);
}

// Returns times that are short until `is_long` is set, as when a program first sets up its data.
SimulatedProgram::Times short_at_first(const bool& is_long, std::vector<std::int64_t> ms) {
  return [&is_long, ms](int rank, int variant, std::uint32_t call) {
    const std::int64_t ns = ms[static_cast<std::size_t>(variant)] * 1'000'000;
    return is_long ? with_noise(ns, rank, call) : std::int64_t{5'000};
  };
}

// Longer periods must be noticed after at most as many calls as were short, up to some thousands.
TEST(Learner, PeriodsThatBecomeLongAreLearntAbout) {
  for (const int short_ones : {10, 100, 1000, 100'000}) {
    SimulatedProgram program;
    bool is_long = false;
    const int call_class = program.add_call_class(3, short_at_first(is_long, {10, 12, 6}));
    for (int call = 0; call < short_ones; ++call) EXPECT_EQ(program.call(call_class), 0);
    EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
    is_long = true;
    for (int call = 0; call < 450 + std::min(2 * short_ones, 4500); ++call)
      program.call(call_class);
    EXPECT_EQ(program.call(call_class), 2) << short_ones;
    EXPECT_TRUE(program.learner(call_class).found().settled);
  }
}

TEST(Learner, PeriodsThatAreShortForAWhileAreLearntAboutAgain) {
  SimulatedProgram program;
  bool is_long = true;
  std::vector<std::int64_t> ms{10, 12, 6};
  const int call_class = program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
    return short_at_first(is_long, ms)(rank, variant, call);
  });
  for (int call = 0; call < 200; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
  is_long = false;
  for (int call = 0; call < 2000; ++call) program.call(call_class);
  is_long = true;
  ms = {10, 5, 12};
  for (int call = 0; call < 5000; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 1);
}

TEST(Learner, BlockingCallsThatBecomeLongAreLearntAbout) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.by_own_time = true;
  bool is_long = false;
  const int call_class = program.add_call_class(3, short_at_first(is_long, {10, 12, 6}), settings);
  for (int call = 0; call < 1000; ++call)
    EXPECT_EQ(program.blocking_call(call_class, 1'000'000), 0);
  EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
  is_long = true;
  int variant = 0;
  for (int call = 0; call < 3000; ++call) variant = program.blocking_call(call_class, 1'000'000);
  EXPECT_EQ(variant, 2);
}

// After a rest only those calls count as in flight that began with the watch. All calls in flight
// together must take the same variant nevertheless.
TEST(Learner, AWatchAfterARestSeesHowManyAreInFlight) {
  for (int test = 0; test < 64; ++test) {
    const int depth = 2 + test / 8, begins = test % 8;
    SimulatedProgram program;
    bool is_last = false;
    const int call_class =
        program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
          const std::int64_t ms[] = {40, 40, 24};
          return is_last ? with_noise(ms[variant] * 1'000'000, rank, call) : std::int64_t{1000};
        });
    for (int call = 0; call < 1000 + begins; ++call) program.call(call_class);
    int counted = 0, of_batch = 0;
    for (int call = 0; call < 1000 * depth; ++call) {
      const int place = call % depth;
      if (place == 0) counted = 0;
      is_last = place == depth - 1;
      const int variant = program.call(call_class, counted);
      const bool is_librarys = variant == 0;
      if (!is_librarys || program.learner(call_class).is_watching()) ++counted;
      if (place == 0) of_batch = variant;
      ASSERT_EQ(variant, of_batch) << "batches begin at " << begins << ", call " << call;
    }
    EXPECT_EQ(of_batch, depth <= Learner::kMostInFlight ? 2 : 0) << depth << ", " << begins;
  }
}

// The first watched call may have been deferred until a comparison ended, so it does not count.
TEST(Learner, AFirstPeriodThatIsLongMakesNoSiteLong) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, [&](int rank, int, std::uint32_t call) {
    return call == 0 ? std::int64_t{60'000} : with_noise(12'000, rank, call);
  });
  for (int call = 0; call < 200; ++call) EXPECT_EQ(program.call(call_class), 0);
  EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
}

// Short calls are, for instance, inner products beside one exchange in each iteration.
TEST(Learner, ShortCallsThatWaitForTheTurnDoNotTakeItFromALongOne) {
  std::vector<std::uint64_t> calls_on_trial;
  for (const int products_of_each : {0, 100}) {
    SimulatedProgram program(2, 100);
    Learner::Settings settings;
    settings.variants_of_short = 0b111;
    const int products = program.add_call_class(
        3, [](int rank, int, std::uint32_t call) { return with_noise(2'000, rank, call); },
        settings);
    const int exchange = program.add_call_class(3, variants_of({10, 6, 12}));
    for (int call = 0; call < 1780; ++call) program.call(products);
    for (int call = 0; call < 60; ++call) {
      program.call(exchange);
      for (int product = 0; call >= 8 && product < products_of_each; ++product)
        program.call(products);
    }
    EXPECT_EQ(program.call(exchange), kNative);
    calls_on_trial.push_back(program.learner(exchange).found().calls_on_trial);
    EXPECT_EQ(program.learner(products).found().calls_on_trial > 0, products_of_each > 0);
  }
  EXPECT_EQ(calls_on_trial[0], calls_on_trial[1]);
}

// The budget is used up. How often trials are asked for depends on the present times.
TEST(Learner, WhatIsPutOffAtShortPeriodsIsAskedForSeldom) {
  SimulatedProgram program(2, 0.001);
  Learner::Settings settings;
  settings.variants_of_short = 0b111;
  bool is_long = true;
  const int call_class = program.add_call_class(
      3,
      [&](int rank, int variant, std::uint32_t call) {
        const std::int64_t ms[] = {10, 12, 14};
        return is_long ? with_noise(ms[variant] * 1'000'000, rank, call) : std::int64_t{2'000};
      },
      settings);
  for (int call = 0; call < 200; ++call) program.call(call_class);
  is_long = false;
  for (int call = 0; call < 10'000; ++call) program.call(call_class);
  const int comparisons = program.comparisons();
  for (int call = 0; call < 100'000; ++call) program.call(call_class);
  EXPECT_LT(program.comparisons(), comparisons + 20);
}

// Without free slots, nothing may be tried beyond the budget.
TEST(Learner, AtShortPeriodsNothingIsTriedBeyondTheBudget) {
  SimulatedProgram program(2, 0.001);
  Learner::Settings settings;
  settings.variants_of_short = 0b111;
  const int call_class = program.add_call_class(
      3, [](int, int, std::uint32_t) { return 5'000; }, settings);
  for (int call = 0; call < 50'000; ++call) EXPECT_EQ(program.call(call_class), 0);
  EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
}

TEST(Learner, AtShortPeriodsTheVariantInUseIsComparedEvenIfItNeedsAThread) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.variants_of_short = 0b110;
  const int call_class = program.add_call_class(
      3,
      [](int rank, int variant, std::uint32_t call) {
        const std::int64_t us[] = {4, 6, 6};
        return with_noise(us[variant] * 1000, rank, call);
      },
      settings);
  for (int call = 0; call < 100'000; ++call) program.call(call_class);
  EXPECT_GT(program.learner(call_class).found().calls_on_trial, 0u);
  EXPECT_EQ(program.call(call_class), 0);
}

TEST(Learner, ShortPeriodsThatSettledAndBecomeLongAreNoticedAsSoonAsAfterARest) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.variants_of_short = 0b111;
  bool is_long = false;
  const int call_class = program.add_call_class(
      3,
      [&](int rank, int variant, std::uint32_t call) {
        return is_long ? variants_of({10, 12, 6})(rank, variant, call) : std::int64_t{500};
      },
      settings);
  for (int call = 0; call < 200'000; ++call) program.call(call_class);
  EXPECT_TRUE(program.learner(call_class).found().settled);
  is_long = true;
  for (int call = 0; call < 36'000; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
}

// One call in a hundred takes eight times as long. This must not trigger new trials.
TEST(Learner, AtShortPeriodsALongCallNowAndThenIsNoChange) {
  SimulatedProgram program(2, 100);
  Learner::Settings settings;
  settings.variants_of_short = 0b111;
  const int call_class = program.add_call_class(
      3, [](int, int, std::uint32_t call) { return call % 100 == 0 ? 40'000 : 5'000; }, settings);
  for (int call = 0; call < 20'000; ++call) program.call(call_class);
  const auto on_trial = program.learner(call_class).found().calls_on_trial;
  EXPECT_GT(on_trial, 0u);
  for (int call = 0; call < 400'000; ++call) program.call(call_class);
  // The challenger is met now and then, but the other variants are not tried again.
  EXPECT_LT(program.learner(call_class).found().calls_on_trial, 2 * on_trial);
}

}  // namespace
}  // namespace weft
