// The learner with programs of two ranks in virtual time: which variant it finds, and how soon.
#include "select/learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "learner_program.h"

namespace weft {
namespace {

TEST(Learner, TakesTheRulesVariantUntilItKnows) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({10, 12, 8}));
  EXPECT_EQ(program.call(call_class), 0);
  EXPECT_FALSE(program.learner(call_class).found().settled);
}

TEST(Learner, FindsTheFastestWithin40Calls) {
  for (const int fastest : {0, 1, 2, 3, 4}) {
    SimulatedProgram program;
    std::vector<std::int64_t> ms(5, 12);
    ms[static_cast<std::size_t>(fastest)] = 8;
    const int call_class = program.add_call_class(5, variants_of(ms));
    for (int call = 0; call < 40; ++call) program.call(call_class);
    const auto found = program.learner(call_class).found();
    EXPECT_TRUE(found.settled);
    EXPECT_EQ(found.variant, fastest);
    EXPECT_EQ(program.call(call_class), fastest);
    EXPECT_GT(found.pairs, 0);
    EXPECT_EQ(found.won, found.pairs);
  }
}

// The program pauses once, just while the best variant is tried for the first time.
TEST(Learner, OneTimeMayBeBadLuck) {
  for (const int fastest : {1, 2, 3}) {
    SimulatedProgram program;
    std::vector<bool> was_late(2);
    const int call_class = program.add_call_class(5, [&](int rank, int variant, std::uint32_t) {
      const auto its = static_cast<std::size_t>(rank);
      if (variant == fastest && !was_late[its]) {
        was_late[its] = true;
        return 100'000'000;
      }
      return variant == fastest ? 8'000'000 : 12'000'000;
    });
    for (int call = 0; call < 60; ++call) program.call(call_class);
    EXPECT_TRUE(program.learner(call_class).found().settled);
    EXPECT_EQ(program.call(call_class), fastest);
  }
}

// Calls before a variant was chosen, and those on trial, do not count. Two variants win in turn.
TEST(Learner, AVariantHasWonWhatItsOwnCallsTookLess) {
  SimulatedProgram program;
  bool is_later = false;
  const int call_class = program.add_call_class(3, [&](int, int variant, std::uint32_t) {
    const std::int64_t first_ms[] = {10, 9, 5}, later_ms[] = {40, 20, 30};
    return (is_later ? later_ms : first_ms)[variant] * 1'000'000;
  });
  const auto found = [&] { return program.learner(call_class).found(); };
  std::int64_t won_ns = 0;
  for (int call = 0; call < 1000; ++call) {
    is_later = call >= 500;
    const auto on_trial = found().calls_on_trial;
    const bool was_settled = found().settled;
    const int in_use = found().variant;
    const int variant = program.call(call_class);
    const auto now = found();
    if (was_settled && now.calls_on_trial == on_trial && variant == in_use)
      won_ns += now.median_ns[0] - now.median_ns[static_cast<std::size_t>(variant)];
    EXPECT_LE(std::abs(found().won_ns - won_ns), is_later ? 300'000'000 : 10'000'000) << call;
  }
  EXPECT_EQ(found().variant, 1);
  EXPECT_GT(won_ns, 8'000'000'000);
}

// In memory, some ranks may not have published their times when others ask for the result.
TEST(Learner, FindsTheFastestWhereARankLagsBehind) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({12, 10, 8}));
  for (int call = 0; call < 1000; ++call) {
    if (call % 100 == 0) program.lag_behind(call_class, 2);
    program.call(call_class);
  }
  EXPECT_EQ(program.learner(call_class).found().variant, 2);
  EXPECT_EQ(program.call(call_class), 2);
}

// A rank that lags behind in a check must not look like a change of the program.
TEST(Learner, ARankThatLagsBehindIsNoChangeOfTheProgram) {
  SimulatedProgram program(2, 0.001);
  const int call_class = program.add_call_class(3, variants_of({12, 11, 8}));
  for (int call = 0; call < 60; ++call) program.call(call_class);
  const auto on_trial = program.learner(call_class).found().calls_on_trial;
  const int comparisons = program.comparisons();
  for (int call = 0; call < 1000; ++call) {
    if (call % 100 == 0) program.lag_behind(call_class, 1);
    EXPECT_EQ(program.call(call_class), 2);
  }
  EXPECT_GT(program.comparisons(), comparisons + 3);
  EXPECT_EQ(program.learner(call_class).found().calls_on_trial, on_trial);
}

TEST(Learner, LooksLaterAndLaterWhereARankLagsBehindForLong) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({12, 10, 8}));
  program.lag_behind(call_class, 1000);
  std::vector<int> looks;
  for (int call = 0; call < 1000; ++call) {
    const bool looks_here = program.learner(call_class).wants_time() && call > 5;
    EXPECT_EQ(program.call(call_class), 0);
    if (looks_here) looks.push_back(call);
  }
  ASSERT_GT(looks.size(), 10u);
  EXPECT_EQ(looks[2] - looks[1], 8);
  EXPECT_EQ(looks[3] - looks[2], 16);
  EXPECT_EQ(looks.back() - looks[looks.size() - 2], 64);
  EXPECT_EQ(program.comparisons(), 0);
}

// The library's variant is the fastest, except in the call after another variant.
TEST(Learner, OfShortCallsTheFirstAfterAnotherVariantDoesNotCount) {
  SimulatedProgram program;
  int before = kNative;
  int now = kNative;
  std::uint32_t last_call = 0;
  const int call_class =
      program.add_call_class(3, [&](int, int variant, std::uint32_t call) -> std::int64_t {
        if (call != last_call) before = std::exchange(now, variant);
        last_call = call;
        const std::int64_t after_another = variant == kNative && before != kNative ? 60'000 : 0;
        return (variant == kNative ? 30'000 : 45'000) + after_another;
      });
  for (int call = 0; call < 300; ++call) program.call(call_class);
  EXPECT_TRUE(program.learner(call_class).found().settled);
  EXPECT_EQ(program.call(call_class), kNative);
  EXPECT_EQ(program.learner(call_class).found().median_ns[kNative], 30'000);
}

// In a fixed order, a variant would always be measured after the same other one.
TEST(Learner, TriesTheVariantsInAnOrderAtRandom) {
  constexpr std::size_t kVariants = 5;
  std::set<std::vector<int>> orders;
  std::set<int> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedProgram program;
    Learner::Settings settings;
    settings.seed = seed;
    const int call_class =
        program.add_call_class(kVariants, variants_of({10, 10, 10, 10, 10}), settings);
    for (int round = 0; round < 2; ++round) {
      std::vector<int> order;
      while (order.size() < kVariants) {
        const auto before = program.learner(call_class).found().calls_on_trial;
        const int variant = program.call(call_class);
        if (program.learner(call_class).found().calls_on_trial > before) order.push_back(variant);
      }
      first.insert(order.front());
      orders.insert(order);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
    }
  }
  EXPECT_EQ(first.size(), kVariants);
  EXPECT_GT(orders.size(), 20u);
}

TEST(Learner, TwoSitesWithOppositeWinnersAreBothFoundWithin40CallsEach) {
  SimulatedProgram program;
  const int one = program.add_call_class(3, variants_of({10, 6, 12}));
  const int other = program.add_call_class(3, variants_of({10, 12, 6}));
  for (int call = 0; call < 40; ++call) {
    program.call(one);
    program.call(other);
  }
  EXPECT_EQ(program.call(one), 1);
  EXPECT_EQ(program.call(other), 2);
}

TEST(Learner, SitesTryTheirVariantsOneAfterTheOther) {
  SimulatedProgram program;
  const int one = program.add_call_class(3, variants_of({10, 6, 12}));
  const int other = program.add_call_class(3, variants_of({10, 12, 6}));
  const auto on_trial = [&](int call_class) {
    return program.learner(call_class).found().calls_on_trial;
  };
  for (int call = 0; call < 60; ++call) {
    const auto before_one = on_trial(one), before_other = on_trial(other);
    program.call(one);
    program.call(other);
    EXPECT_FALSE(on_trial(one) > before_one && on_trial(other) > before_other) << call;
  }
  EXPECT_GT(on_trial(one), 0u);
  EXPECT_GT(on_trial(other), 0u);
}

// Variant 2 has the smaller median, but it was slower in half of the rounds.
TEST(Learner, WhatWinsHalfOfTheRoundsOnlyIsLeftToTheLibrary) {
  SimulatedProgram program(1);
  std::size_t tried = 0;
  const int call_class = program.add_call_class(3, [&](int, int variant, std::uint32_t) {
    const std::int64_t own_ms[] = {8, 11, 8, 11, 8, 11};
    const std::int64_t ms = variant == 2 ? own_ms[tried++ % 6] : variant == kNative ? 10 : 20;
    return ms * 1'000'000;
  });
  for (int call = 0; call < 60; ++call) program.call(call_class);
  EXPECT_GT(tried, 3u);
  EXPECT_EQ(program.call(call_class), kNative);
}

TEST(Learner, WhatIsAsFastAsTheLibraryStaysTheLibrarys) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(4, variants_of({1000, 1000, 995, 1000}));
  for (int call = 0; call < 60; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), kNative);
}

// The variant is faster by 3 or 4 % in every round, and there are enough rounds.
TEST(Learner, WhatIsAlwaysALittleFasterThanTheLibraryIsTaken) {
  for (const std::int64_t best : {970, 960}) {
    SimulatedProgram program(1);
    const int call_class = program.add_call_class(4, [&](int, int variant, std::uint32_t call) {
      const std::int64_t us[] = {1200, 1000, best, 1100};
      return us[variant] * 1000 + call % 5 * 1000;
    });
    for (int call = 0; call < 2000; ++call) program.call(call_class);
    EXPECT_EQ(program.call(call_class), 2) << best;
  }
}

// The variant is faster by 3 %, but not in every round.
TEST(Learner, WhatIsMostlyALittleFasterThanTheLibraryIsNot) {
  SimulatedProgram program(1);
  std::size_t tried = 0;
  const int call_class = program.add_call_class(3, [&](int, int variant, std::uint32_t) {
    const std::int64_t own_us[] = {970, 970, 1050};
    const std::int64_t us = variant == 2 ? own_us[tried++ % 3] : variant == kNative ? 1000 : 2000;
    return us * 1000;
  });
  for (int call = 0; call < 60; ++call) program.call(call_class);
  EXPECT_GT(tried, 8u);
  EXPECT_EQ(program.call(call_class), kNative);
}

TEST(Learner, AVariantThatIsTwiceAsSlowIsMetTwiceAtMost) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(4, variants_of({10, 10, 20, 11}));
  int met = 0;
  for (int call = 0; call < 200; ++call) met += program.call(call_class) == 2;
  EXPECT_GE(met, 1);
  EXPECT_LE(met, 2);
}

TEST(Learner, TheSlowestRankCounts) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, [](int rank, int variant, std::uint32_t call) {
    const std::int64_t ms = variant == 2 ? (rank == 0 ? 2 : 14) : 10;
    return with_noise(ms * 1'000'000, rank, call);
  });
  for (int call = 0; call < 60; ++call) program.call(call_class);
  EXPECT_NE(program.call(call_class), 2);
}

TEST(Learner, AChangeOfPhaseIsFoundWithin100Calls) {
  SimulatedProgram program;
  bool second = false;
  const int call_class = program.add_call_class(3, [&](int rank, int variant, std::uint32_t call) {
    const std::int64_t first_ms[] = {10, 12, 6}, second_ms[] = {30, 20, 40};
    return with_noise((second ? second_ms : first_ms)[variant] * 1'000'000, rank, call);
  });
  for (int call = 0; call < 100; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
  second = true;
  for (int call = 0; call < 100; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 1);
}
TEST(Learner, WhatIsInFlightTogetherIsTriedTogether) {
  for (const int depth : {2, 4, 7, 8}) {
    SimulatedProgram program;
    // A batch takes as long as its slowest variant; all its calls except the last return at once.
    std::int64_t slowest = 0;
    const auto last = static_cast<std::uint32_t>(depth - 1);
    const int call_class = program.add_call_class(3, [&](int, int variant, std::uint32_t call) {
      const std::int64_t ms[] = {40, 40, 24};
      slowest = std::max(slowest, ms[variant]);
      if (call % (last + 1) != last) return std::int64_t{1000};
      return std::exchange(slowest, 0) * 1'000'000;
    });
    for (int call = 0; call < 50 * depth; ++call) program.call(call_class, call % depth);
    EXPECT_EQ(program.call(call_class), 2) << depth;
  }
}

// The result holds in the next run. Longer first calls must not count as a change.
TEST(Learner, WhatWasFoundOfCallsInFlightTogetherHolds) {
  for (int depth = 1; depth <= Learner::kMostInFlight; ++depth)
    for (const int conditional : {-1, 2}) {
      Learner::Settings settings;
      settings.conditional = conditional;
      for (int run = 0; run < 2; ++run) {
        SimulatedProgram program;
        const int call_class = program.add_call_class(
            3,
            [&](int rank, int variant, std::uint32_t call) {
              const bool is_last =
                  call % static_cast<std::uint32_t>(depth) + 1 == static_cast<std::uint32_t>(depth);
              const int once = call < static_cast<std::uint32_t>(depth) ? 4 : 1;
              const std::int64_t ms[] = {10, 12, 8};
              return is_last ? with_noise(ms[variant] * once * 1'000'000, rank, call)
                             : std::int64_t{2000};
            },
            settings);
        for (int call = 0; call < 100 * depth; ++call) program.call(call_class, call % depth);
        const auto found = program.learner(call_class).found();
        EXPECT_TRUE(found.settled) << depth;
        EXPECT_EQ(found.variant, 2) << depth;
        EXPECT_EQ(found.depth, depth);
        EXPECT_EQ(found.calls_on_trial > 0, run == 0) << depth;
        settings.known = {{found.variant, found.median_ns[2], found.depth}};
      }
    }
}

TEST(Learner, SitesWithVeryManyInFlightKeepTheRulesVariant) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({10, 5, 5}));
  for (int call = 0; call < 20'000; ++call) EXPECT_EQ(program.call(call_class, call % 64), 0);
  EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
  EXPECT_LT(program.comparisons(), 16);
}

TEST(Learner, WhatHasFewerInFlightLaterIsLearntAboutThen) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(3, variants_of({10, 12, 5}));
  for (int call = 0; call < 3000; ++call) EXPECT_EQ(program.call(call_class, call % 40), 0);
  for (int call = 0; call < 3000; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 2);
}

TEST(Learner, WhatAnEarlierRunFoundIsTakenFromTheFirstCall) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.known = {{2, 8'100'000}};
  const int call_class = program.add_call_class(3, variants_of({10, 12, 8}), settings);
  for (int call = 0; call < 300; ++call) EXPECT_EQ(program.call(call_class), 2);
  EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
}

TEST(Learner, WhatNoLongerHoldsIsFoundAnew) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.known = {{2, 3'000'000}};  // in this run it takes 20 ms
  const int call_class = program.add_call_class(3, variants_of({10, 12, 20}), settings);
  for (int call = 0; call < 100; ++call) program.call(call_class);
  EXPECT_EQ(program.call(call_class), 0);
}

// Each variant is tried in one round of all, and in two more.
TEST(Learner, ManyVariantsAreAllTriedThreeTimes) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(
      Learner::kMostVariants, variants_of({10, 12, 11, 12, 9, 12, 11, 12, 10, 11}));
  for (int call = 0; call < 60; ++call) program.call(call_class);
  const auto found = program.learner(call_class).found();
  EXPECT_TRUE(found.settled);
  EXPECT_EQ(found.variant, 4);
  EXPECT_GE(found.calls_on_trial, 3 * Learner::kMostVariants);
}

TEST(Learner, AVariantThatARankCannotTakeIsLeftOut) {
  for (const int without : {-1, 0, 1}) {
    SimulatedProgram program;
    program.leave_without_worker(without);
    Learner::Settings settings;
    settings.conditional = 3;
    const int call_class = program.add_call_class(4, variants_of({10, 12, 9, 5}), settings);
    bool taken = false;
    for (int call = 0; call < 60; ++call) taken = program.call(call_class) == 3 || taken;
    EXPECT_EQ(taken, without < 0);
    EXPECT_EQ(program.call(call_class), without < 0 ? 3 : 2);
  }
}

TEST(Learner, AVariantThatIsKnownButMayBeMissingIsTakenOnceTheRanksHaveAgreed) {
  for (const bool tries : {true, false})
    for (const int without : {-1, 1}) {
      SimulatedProgram program;
      program.leave_without_worker(without);
      Learner::Settings settings;
      settings.conditional = 3;
      settings.tries = tries;
      settings.known = {{3, 5'050'000}};
      const int call_class = program.add_call_class(4, variants_of({10, 12, 9, 5}), settings);
      EXPECT_EQ(program.call(call_class), 0);
      for (int call = 0; call < 10; ++call) program.call(call_class);
      if (without < 0) {
        for (int call = 0; call < 300; ++call) EXPECT_EQ(program.call(call_class), 3);
        EXPECT_EQ(program.learner(call_class).found().calls_on_trial, 0u);
      } else {
        for (int call = 0; call < 300; ++call) EXPECT_NE(program.call(call_class), 3);
        EXPECT_EQ(program.call(call_class), tries ? 2 : 0);
      }
    }
}

TEST(Learner, ASiteThatIsNoLongerCalledGivesItsTurnToOthers) {
  SimulatedProgram program;
  const int one = program.add_call_class(3, variants_of({10, 6, 12}));
  const int other = program.add_call_class(3, variants_of({10, 12, 6}));
  for (int call = 0; call < 8; ++call) program.call(one);  // still within its trials
  for (int call = 0; call < 150; ++call) program.call(other);
  EXPECT_EQ(program.call(other), 2);
  for (int call = 0; call < 60; ++call) program.call(one);
  EXPECT_EQ(program.call(one), 1);
}

// The library's variant is fast only on trial: two of its calls in a row wait for each other, but
// on trial other variants come between. A new result is checked early, however short the calls are.
TEST(Learner, WhatIsFastOnlyOnTrialIsFoundOut) {
  for (const std::int64_t unit_ns : {1000, 100}) {
    SimulatedProgram program(2, 0.001);  // tries only in the free slots
    int before = kNative, now = kNative;
    std::uint32_t last_call = 0;
    const int call_class =
        program.add_call_class(6, [&](int rank, int variant, std::uint32_t call) {
          if (call != last_call) before = std::exchange(now, variant);
          last_call = call;
          const std::int64_t units[] = {1500, 900, 1300, 1400, 1400, 1400};
          const bool waits = variant == kNative && before == kNative;
          return with_noise((waits ? 2500 : units[variant]) * unit_ns, rank, call);
        });
    for (int call = 0; call < 60; ++call) program.call(call_class);
    EXPECT_EQ(program.call(call_class), kNative);
    for (int call = 0; call < 400; ++call) program.call(call_class);
    EXPECT_EQ(program.call(call_class), 2);
    int others = 0;
    for (int call = 0; call < 5000; ++call) others += program.call(call_class) != 2;
    EXPECT_LT(others, 100);
  }
}

// A pause, such as the writing of a file after every tenth call, counts against no variant and is
// no change.
TEST(Learner, WhatHoldsTheProgramUpNowAndThenIsNoVariantsFault) {
  SimulatedProgram program;
  const int call_class = program.add_call_class(4, [](int rank, int variant, std::uint32_t call) {
    const std::int64_t pause_ns = call % 10 == 7 ? 1'000'000'000 : 0;
    return pause_ns + variants_of({10, 8, 6, 9})(rank, variant, call);
  });
  for (int call = 0; call < 2000; ++call) program.call(call_class);
  const auto found = program.learner(call_class).found();
  EXPECT_EQ(program.call(call_class), 2);
  EXPECT_LE(found.calls_on_trial, 36u);  // the trials were not repeated
  EXPECT_LT(found.trials_cost_ns, 300'000'000);
}

// Pauses cost little, however many there are, even if all times of one variant contain one.
TEST(Learner, PausesCostNoMoreThanAFewCalls) {
  for (std::uint32_t calls = 3; calls <= 12; ++calls) {
    SimulatedProgram program;
    const int call_class =
        program.add_call_class(4, [=](int rank, int variant, std::uint32_t call) {
          const std::int64_t pause_ns = call % calls == 2 ? 10'000'000'000 : 0;
          return pause_ns + variants_of({10, 8, 6, 9})(rank, variant, call);
        });
    for (int call = 0; call < 200; ++call) program.call(call_class);
    EXPECT_LT(program.learner(call_class).found().trials_cost_ns, 1'000'000'000) << calls;
  }
}

// A new learner may have the address of one that was destroyed, and must not inherit its turn.
TEST(Learner, TheTurnOfALearnerThatIsGoneIsNoOthers) {
  TrialTurn turn;
  TrialBudget budget(1, 0);
  std::optional<Learner> learner;
  learner.emplace(3, kNative, Learner::Settings{}, budget);
  EXPECT_TRUE(turn.take(*learner));
  learner.emplace(3, kNative, Learner::Settings{}, budget);
  EXPECT_FALSE(turn.has(*learner));
  EXPECT_FALSE(turn.take(*learner));
  for (int call = 0; call < 100; ++call) turn.call_of(*learner);
  EXPECT_TRUE(turn.take(*learner));
}

// If next() does not know the variant, calling it again changes nothing.
TEST(Learner, AsksForTheSameCallAgain) {
  TrialTurn turn;
  TrialBudget budget(1, 0);
  Learner learner(3, kNative, {}, budget);
  std::int64_t now = 0;
  while (learner.next(now, 0, turn)) now += 1'000'000;
  const auto calls = learner.found().calls;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(learner.next(now + i, 0, turn));
  EXPECT_EQ(learner.found().calls, calls);
  learner.agreed(learner.words());
  EXPECT_TRUE(learner.next(now, 0, turn));
  EXPECT_EQ(learner.found().calls, calls + 1);
}

TEST(Learner, SwitchingTakesEveryVariant) {
  SimulatedProgram program;
  Learner::Settings settings;
  settings.switches = true;
  settings.seed = 7;
  const int call_class = program.add_call_class(4, variants_of({10, 10, 10, 10}), settings);
  std::map<int, int> taken;
  for (int call = 0; call < 200; ++call) ++taken[program.call(call_class)];
  for (int variant = 0; variant < 4; ++variant) EXPECT_GT(taken[variant], 10) << variant;
}

}  // namespace
}  // namespace weft
