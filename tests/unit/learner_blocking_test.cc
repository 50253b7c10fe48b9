// The learner's measurements of blocking calls, tested with programs of two ranks in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "learner_program.h"
#include "select/learner.h"

namespace weft {
namespace {

// The faster the call's variant is, the longer is the computation between calls.
TEST(Learner, ABlockingCallIsMeasuredByItsOwnTime) {
  for (const int fastest : {0, 1, 2}) {
    SimulatedProgram program;
    Learner::Settings settings;
    settings.by_own_time = true;
    std::vector<std::int64_t> ms(3, 12);
    ms[static_cast<std::size_t>(fastest)] = 8;
    const int call_class = program.add_call_class(3, variants_of(ms), settings);
    int variant = 0;
    for (int call = 0; call < 60; ++call)
      variant = program.blocking_call(call_class, variant == fastest ? 100'000'000 : 1'000'000);
    EXPECT_EQ(variant, fastest);
    const auto found = program.learner(call_class).found();
    EXPECT_TRUE(found.settled);
    EXPECT_TRUE(found.was_left);
    EXPECT_NEAR(static_cast<double>(found.median_ns[static_cast<std::size_t>(fastest)]), 8.2e6,
                3e5);
  }
}

// The ranks come later than a call takes.
TEST(Learner, RanksThatComeLateToABlockingCallAreNoVariantsFault) {
  for (const int other_ms : {8, 13}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SimulatedProgram program;
      Learner::Settings settings;
      settings.seed = seed;
      settings.by_own_time = settings.by_least_time = true;
      const int call_class =
          program.add_call_class(5, variants_of({12, 10, other_ms, 13, 13}), settings);
      int variant = 0;
      for (std::uint32_t call = 0; call < 400; ++call) {
        const auto number = static_cast<std::uint32_t>(seed) * 1000 + call;
        const std::int64_t late_ns = (number * 2654435761u >> 16) * std::int64_t{3000};
        variant = number % 3 == 0 ? program.blocking_call(call_class, 1'000'000, {late_ns, 0})
                                  : program.blocking_call(call_class, 1'000'000, {0, late_ns});
      }
      EXPECT_EQ(variant, other_ms == 8 ? 2 : kNative) << seed;
      const auto found = program.learner(call_class).found();
      EXPECT_NEAR(static_cast<double>(found.median_ns[static_cast<std::size_t>(variant)]) / 1e6,
                  std::min(10, other_ms), 0.5);
    }
  }
}

// In such a variant, for instance, a reduction to a root is followed by the root's broadcast, from
// which the root returns early.
TEST(Learner, AVariantThatReleasesARankLateIsMeasuredOnThatRank) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedProgram program;
    Learner::Settings settings;
    settings.seed = seed;
    settings.by_own_time = settings.by_least_time = true;
    const int call_class = program.add_call_class(4, variants_of({10, 10, 10, 10}), settings);
    std::int64_t late_ns = 0;  // delay of rank 1 at the next call
    int variant = 0, tried = 0;
    for (int call = 0; call < 100; ++call) {
      variant = program.blocking_call(call_class, 1'000'000, {0, late_ns},
                                      [&](int variant) { return variant == 2 ? 20'000'000 : 0; });
      late_ns = variant == 2 ? 20'000'000 : 0;
      tried += variant == 2 ? 1 : 0;
    }
    EXPECT_NE(variant, 2) << seed;
    EXPECT_EQ(tried, 4) << seed;  // two slots
    const auto found = program.learner(call_class).found();
    EXPECT_NEAR(static_cast<double>(found.median_ns[2]) / 1e6, 30, 1) << seed;
  }
}

// In the first counted call of the best variant the machine was disturbed.
TEST(Learner, OneLongCallDoesNotDropTheBestVariantOfBlockingCalls) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedProgram program;
    Learner::Settings settings;
    settings.seed = seed;
    settings.by_own_time = settings.by_least_time = true;
    int made = 0;
    const int call_class = program.add_call_class(
        4,
        [&](int rank, int variant, std::uint32_t call) {
          const bool is_hiccup = variant == 2 && rank == 0 && ++made == 2;
          return with_noise((variant == 2 ? 6 : 10) * std::int64_t{1'000'000}, rank, call) +
                 (is_hiccup ? 30'000'000 : 0);
        },
        settings);
    int variant = 0;
    for (int call = 0; call < 100; ++call) variant = program.blocking_call(call_class, 1'000'000);
    EXPECT_EQ(variant, 2) << seed;
  }
}

// Without free slots, a second call of slow variants costs more than the budget.
TEST(Learner, TheBudgetDecidesWhetherSlowBlockingCallsAreMadeTwice) {
  for (const bool has_free_slots : {true, false}) {
    SimulatedProgram program;
    Learner::Settings settings;
    settings.by_own_time = settings.by_least_time = true;
    settings.has_free_slots = has_free_slots;
    int made = 0;
    const int call_class = program.add_call_class(
        3,
        [&](int rank, int variant, std::uint32_t call) {
          made += variant == 2 && rank == 0 ? 1 : 0;
          return with_noise((variant == 2 ? 30 : 10) * std::int64_t{1'000'000}, rank, call);
        },
        settings);
    for (int call = 0; call < 600; ++call) program.blocking_call(call_class, 1'000'000);
    EXPECT_TRUE(program.learner(call_class).found().settled);
    EXPECT_EQ(made, has_free_slots ? 4 : 2);
  }
}

// For instance a call in which a rank came late.
TEST(Learner, OneLongBlockingCallDoesNotTakeItFromTheLibrary) {
  SimulatedProgram program(1);
  Learner::Settings settings;
  settings.by_own_time = true;
  int tried = 0;
  const int call_class = program.add_call_class(
      3,
      [&](int, int variant, std::uint32_t) {
        const bool is_late = variant == kNative && tried++ == 0;
        return (is_late ? 100 : variant == kNative ? 10 : 12) * std::int64_t{1'000'000};
      },
      settings);
  int variant = 0;
  for (int call = 0; call < 60; ++call) variant = program.blocking_call(call_class, 1'000'000);
  EXPECT_GT(tried, 3);
  EXPECT_EQ(variant, kNative);
}

}  // namespace
}  // namespace weft
