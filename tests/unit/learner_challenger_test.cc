// The learner when the variant in use takes as long as before, but another one has become faster.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "learner_program.h"
#include "select/learner.h"

namespace weft {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Learner::Settings known(int variant, std::vector<std::int64_t> variants_ms, int depth = 1) {
  for (std::int64_t& ms : variants_ms) ms *= kMs;
  Learner::Settings settings;
  const std::int64_t period_ns = variants_ms[static_cast<std::size_t>(variant)];
  settings.known = {{variant, period_ns, depth, std::move(variants_ms)}};
  return settings;
}

// Weft's variant challenges the library's, or the library's Weft's, within the free slots.
TEST(Learner, AKnownVariantThatIsBeatenByNowIsLearntAboutAnew) {
  for (const int before : {kNative, 2}) {
    SimulatedProgram program(2, 0.001);
    const std::vector<std::int64_t> now_ms = {120, before == kNative ? 110 : 80,
                                              before == kNative ? 80 : 110};
    const int call_class =
        program.add_call_class(3, variants_of(now_ms), known(before, {120, 100, 100}));
    for (int call = 0; call < 80; ++call) program.call(call_class);
    const auto found = program.learner(call_class).found();
    EXPECT_TRUE(found.is_new());
    EXPECT_EQ(found.variant, 3 - before);
    for (int call = 0; call < 50; ++call) EXPECT_EQ(program.call(call_class), 3 - before);
  }
}

TEST(Learner, ASettledVariantThatIsBeatenByNowIsLearntAboutAnew) {
  SimulatedProgram program;
  bool is_later = false;
  const int call_class = program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
    const std::int64_t first_ms[] = {110, 100, 80}, later_ms[] = {110, 70, 95};
    return with_noise((is_later ? later_ms : first_ms)[variant] * kMs, rank, call);
  });
  for (int call = 0; call < 300; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
  is_later = true;
  for (int call = 0; call < 700; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), kNative);
}

// All calls of a batch take the same variant. The time of the batch is that of its last call.
TEST(Learner, ABatchIsComparedWithItsChallengerAsAWhole) {
  for (const int depth : {2, 5, 8}) {
    SimulatedProgram program(2, 0.001);
    const auto batch = static_cast<std::uint32_t>(depth);
    bool is_mixed = false;
    int of_batch = 0;
    const int call_class = program.add_call_class(
        3,
        [&](int rank, int variant, std::uint32_t call) {
          if (call % batch == 0) of_batch = variant;
          is_mixed = is_mixed || variant != of_batch;
          const std::int64_t ms[] = {120, 80, 110};
          return call % batch + 1 == batch ? with_noise(ms[variant] * kMs * depth, rank, call)
                                           : std::int64_t{1000};
        },
        known(2, {120, 100, 100}, depth));
    for (int call = 0; call < 80 * depth; ++call) program.call(call_class, call % depth);
    EXPECT_EQ(program.call(call_class), kNative) << depth;
    EXPECT_FALSE(is_mixed) << depth;
  }
}

// A single call may come before the batches or between them. Among the library's calls, only those
// that are watched count as in flight.
TEST(Learner, ABatchIsComparedWithItsChallengerAsAWholeWhereverBatchesBegin) {
  for (const int test : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const int depth = 2 + test / 2, challenger = test % 2 == 0 ? 2 : kNative,
              in_use = 3 - challenger;
    for (const int alone : {0, 90}) {
      SimulatedProgram program(2, 0.001);
      bool is_last = false;
      const int call_class = program.add_call_class(
          3,
          [&](int rank, int variant, std::uint32_t call) {
            const std::int64_t ms[] = {120, variant == challenger ? 80 : 110,
                                       variant == challenger ? 80 : 110};
            return is_last ? with_noise(ms[variant] * kMs * depth, rank, call) : std::int64_t{1000};
          },
          known(in_use, {120, 100, 100}, depth));
      int counted = 0, of_batch = 0;
      const auto make_call = [&](bool begins, bool ends) {
        if (begins) counted = 0;
        is_last = ends;
        const int variant = program.call(call_class, counted);
        if (variant != kNative || program.learner(call_class).is_watching()) ++counted;
        if (begins) of_batch = variant;
        EXPECT_EQ(variant, of_batch) << depth << ", " << alone;
      };
      for (int batch = 0; batch < 150; ++batch) {
        if (batch == alone) make_call(true, true);
        for (int place = 0; place < depth; ++place) make_call(place == 0, place + 1 == depth);
      }
      EXPECT_EQ(of_batch, challenger) << depth << ", " << alone;
    }
  }
}

TEST(Learner, EachPositionIsComparedWithItsChallenger) {
  SimulatedProgram program(2, 0.001);
  Learner::Settings settings;
  settings.known = {{2, 30 * kMs, 1, {40 * kMs, 34 * kMs, 30 * kMs}},
                    {2, 100 * kMs, 1, {120 * kMs, 110 * kMs, 100 * kMs}}};
  const int call_class = program.add_call_class(
      3,
      [&](int rank, int variant, std::uint32_t call) {
        const std::int64_t ms[][3] = {{40, 35, 30}, {120, 80, 110}};
        return with_noise(ms[call % 2][variant] * kMs, rank, call);
      },
      settings);
  for (int call = 0; call < 500; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
  EXPECT_EQ(program.call(call_class), kNative);
}

// Each round contains one call of the challenger, and there are few rounds.
TEST(Learner, AVariantThatHoldsMeetsItsChallengerSeldom) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({12, 10, 8}), known(2, {12, 10, 8}));
  int others = 0;
  for (int call = 0; call < 100'000; ++call) others += program.call(call_class) != 2;
  EXPECT_GE(others, 2);
  EXPECT_LE(others, 120);
  const auto found = program.learner(call_class).found();
  EXPECT_FALSE(found.is_new());
  EXPECT_LT(found.trials_cost_ns, program.now_ns() / 1000);
}

// A challenger that is clearly slower needs the budget, so it is never met in a short run.
TEST(Learner, AChallengerThatIsClearlySlowerIsMetWithinTheBudget) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({12, 40, 8}), known(2, {12, 40, 8}));
  for (int call = 0; call < 390; ++call) EXPECT_EQ(program.call(call_class), 2);
  int others = 0;
  for (int call = 0; call < 100'000; ++call) others += program.call(call_class) != 2;
  EXPECT_GE(others, 1);
  EXPECT_LT(program.learner(call_class).found().trials_cost_ns, program.now_ns() / 100);
}

// The variant in use was delayed in its first round with the challenger.
TEST(Learner, AChallengerThatWasLuckyOnceIsMetWithinTheBudget) {
  SimulatedProgram program;
  std::uint32_t last_met = 0;
  int met = 0;
  std::uint64_t on_trial = 0;
  const int call_class = program.add_call_class(
      3,
      [&](int rank, int variant, std::uint32_t call) {
        const auto now_on_trial = program.learner(0).found().calls_on_trial;
        if (now_on_trial != std::exchange(on_trial, now_on_trial))
          met = call - std::exchange(last_met, call) > 50 ? 1 : met + 1;
        const bool is_held_up = call == last_met && met <= 2 && variant == 2;
        const std::int64_t ms[] = {12, 40, is_held_up ? 60 : 8};
        return with_noise(ms[variant] * kMs, rank, call);
      },
      known(2, {12, 40, 8}));
  for (int call = 0; call < 20'000; ++call) {
    program.call(call_class);
    ASSERT_LE(program.learner(call_class).found().trials_cost_ns, program.now_ns() / 100) << call;
  }
  EXPECT_GT(on_trial, 4u);
}

TEST(Learner, AChallengerThatWasClearlySlowerIsTakenWhereItIsFasterByNow) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({12, 5, 8}), known(2, {12, 40, 8}));
  for (int call = 0; call < 600; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), kNative);
}

// Two variants that are equally fast must not trigger new trials, whatever noise their times have.
TEST(Learner, AVariantThatIsAsFastAsItsChallengerIsNotLearntAboutAgainAndAgain) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    SimulatedProgram program;
    const int call_class = program.add_call_class(
        3,
        [&](int rank, int variant, std::uint32_t call) {
          const std::int64_t ms[] = {12, 10, 10};
          return with_noise(ms[variant] * kMs, rank + variant, call * 31 + seed);
        },
        known(2, {12, 10, 10}));
    for (int call = 0; call < 3000; ++call) program.call(call_class);
    EXPECT_LT(program.learner(call_class).found().calls_on_trial, 120u) << seed;
  }
}

// A pause of the program, such as writing a file, counts neither as cost nor against the
// challenger.
TEST(Learner, WhatHoldsTheProgramUpWhileItsChallengerIsMetCostsLittle) {
  SimulatedProgram program(2, 1);
  std::vector<int> met(3);
  const int call_class = program.add_call_class(
      3,
      [&](int rank, int variant, std::uint32_t call) {
        const bool is_first_of_rival =
            variant != 2 && met[static_cast<std::size_t>(variant)]++ == 0;
        return with_noise(is_first_of_rival ? 10'000 * kMs : 100 * kMs, rank, call);
      },
      known(2, {120, 100, 100}));
  for (int call = 0; call < 1500; ++call) program.call(call_class);
  EXPECT_LT(program.learner(call_class).found().trials_cost_ns, 1'000 * kMs);
  EXPECT_GT(met[0] + met[1], 2);  // the challenger is met again
}

// A variant with a worker, which some rank does not have, is never taken, not even as challenger.
TEST(Learner, AChallengerThatARankCannotTakeIsNone) {
  for (const int without : {-1, 1}) {
    SimulatedProgram program;
    program.leave_without_worker(without);
    Learner::Settings settings = known(kNative, {120, 100, 105});
    settings.conditional = 2;
    const int call_class = program.add_call_class(3, variants_of({120, 100, 80}), settings);
    bool taken = false;
    for (int call = 0; call < 500; ++call) taken = program.call(call_class) == 2 || taken;
    EXPECT_EQ(taken, without < 0);
  }
}

TEST(Learner, AChallengerThatARankCannotTakeHidesNoOther) {
  SimulatedProgram program(2, 0.001);
  program.leave_without_worker(1);
  Learner::Settings settings = known(kNative, {110, 100, 105});
  settings.conditional = 2;
  const int call_class = program.add_call_class(3, variants_of({80, 110, 70}), settings);
  for (int call = 0; call < 80; ++call) EXPECT_NE(program.call(call_class), 2);
  EXPECT_EQ(program.call(call_class), 0);
}

// The call class loses its turn to compare while another call class is called.
TEST(Learner, AComparisonWithAChallengerMayBeBrokenOff) {
  SimulatedProgram program;
  const int one = program.add_call_class(3, variants_of({120, 80, 110}), known(2, {120, 100, 100}));
  const int other = program.add_call_class(2, variants_of({10, 10}));
  const auto on_trial = [&] { return program.learner(one).found().calls_on_trial; };
  for (int call = 0; call < 100 && on_trial() == 0; ++call) program.call(one);
  for (int call = 0; call < 200; ++call) program.call(other);
  for (int call = 0; call < 200; ++call) program.call(one);
  EXPECT_EQ(program.call(one), kNative);
}

}  // namespace
}  // namespace weft
