// The learner with programs of two ranks in virtual time: what it finds, how soon, and what that
// costs.
#include "select/learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "learner_program.h"

namespace weft {
namespace {

TEST(Learner, TakesTheRulesWayUntilItKnows) {
  Program program;
  const int site = program.add_site(3, ways_of({10, 12, 8}));
  EXPECT_EQ(program.call(site), 0);
  EXPECT_FALSE(program.learner(site).found().settled);
}

TEST(Learner, FindsTheFastestWithin40Calls) {
  for (const int fastest : {0, 1, 2, 3, 4}) {
    Program program;
    std::vector<std::int64_t> ms(5, 12);
    ms[static_cast<std::size_t>(fastest)] = 8;
    const int site = program.add_site(5, ways_of(ms));
    for (int call = 0; call < 40; ++call) program.call(site);
    const auto found = program.learner(site).found();
    EXPECT_TRUE(found.settled);
    EXPECT_EQ(found.way, fastest);
    EXPECT_EQ(program.call(site), fastest);
    EXPECT_GT(found.pairs, 0);
    EXPECT_EQ(found.won, found.pairs);
  }
}

// The program does something else for once, while the best way is tried for the first time.
TEST(Learner, OneTimeMayBeBadLuck) {
  for (const int fastest : {1, 2, 3}) {
    Program program;
    std::vector<bool> was_late(2);
    const int site = program.add_site(5, [&](int rank, int way, std::uint32_t) {
      const auto its = static_cast<std::size_t>(rank);
      if (way == fastest && !was_late[its]) {
        was_late[its] = true;
        return 100'000'000;
      }
      return way == fastest ? 8'000'000 : 12'000'000;
    });
    for (int call = 0; call < 60; ++call) program.call(site);
    EXPECT_TRUE(program.learner(site).found().settled);
    EXPECT_EQ(program.call(site), fastest);
  }
}

// Where ranks compare in memory, some may not have told yet what the others wait for.
TEST(Learner, FindsTheFastestWhereARankLagsBehind) {
  Program program;
  const int site = program.add_site(3, ways_of({12, 10, 8}));
  for (int call = 0; call < 1000; ++call) {
    if (call % 100 == 0) program.lag_behind(site, 2);
    program.call(site);
  }
  EXPECT_EQ(program.learner(site).found().way, 2);
  EXPECT_EQ(program.call(site), 2);
}

// The same where they look whether the program still does the same.
TEST(Learner, ARankThatLagsBehindIsNoChangeOfTheProgram) {
  Program program;
  const int site = program.add_site(3, ways_of({12, 10, 8}));
  for (int call = 0; call < 60; ++call) program.call(site);
  const auto on_trial = program.learner(site).found().calls_on_trial;
  const int comparisons = program.comparisons();
  for (int call = 0; call < 1000; ++call) {
    if (call % 100 == 0) program.lag_behind(site, 1);
    EXPECT_EQ(program.call(site), 2);
  }
  EXPECT_GT(program.comparisons(), comparisons + 3);
  EXPECT_EQ(program.learner(site).found().calls_on_trial, on_trial);
}

TEST(Learner, LooksLaterAndLaterWhereARankLagsBehindForLong) {
  Program program;
  const int site = program.add_site(3, ways_of({12, 10, 8}));
  program.lag_behind(site, 1000);
  std::vector<int> looks;
  for (int call = 0; call < 1000; ++call) {
    const bool looks_here = program.learner(site).wants_time() && call > 5;
    EXPECT_EQ(program.call(site), 0);
    if (looks_here) looks.push_back(call);
  }
  ASSERT_GT(looks.size(), 10u);
  EXPECT_EQ(looks[2] - looks[1], 8);
  EXPECT_EQ(looks[3] - looks[2], 16);
  EXPECT_EQ(looks.back() - looks[looks.size() - 2], 64);
  EXPECT_EQ(program.comparisons(), 0);
}

// The library's way is the fastest, but not right after another one.
TEST(Learner, OfShortCallsTheFirstAfterAnotherWayDoesNotCount) {
  Program program;
  int before = kNative;
  int now = kNative;
  std::uint32_t last_call = 0;
  const int site = program.add_site(3, [&](int, int way, std::uint32_t call) -> std::int64_t {
    if (call != last_call) before = std::exchange(now, way);
    last_call = call;
    const std::int64_t after_another = way == kNative && before != kNative ? 60'000 : 0;
    return (way == kNative ? 30'000 : 45'000) + after_another;
  });
  for (int call = 0; call < 300; ++call) program.call(site);
  EXPECT_TRUE(program.learner(site).found().settled);
  EXPECT_EQ(program.call(site), kNative);
  EXPECT_EQ(program.learner(site).found().median_ns[kNative], 30'000);
}

TEST(Learner, TwoSitesWithOppositeWinnersAreBothFoundWithin40CallsEach) {
  Program program;
  const int one = program.add_site(3, ways_of({10, 6, 12}));
  const int other = program.add_site(3, ways_of({10, 12, 6}));
  for (int call = 0; call < 40; ++call) {
    program.call(one);
    program.call(other);
  }
  EXPECT_EQ(program.call(one), 1);
  EXPECT_EQ(program.call(other), 2);
}

// Of so many calls of a site, ms by position and way.
Program::Times in_cycle(std::vector<std::vector<std::int64_t>> ms) {
  return [ms](int rank, int way, std::uint32_t call) {
    const auto& of_ways = ms[call % ms.size()];
    return with_noise(of_ways[static_cast<std::size_t>(way)] * 1'000'000, rank, call);
  };
}

TEST(Learner, CallsThatTakeTurnsAreToldApart) {
  const std::vector<std::vector<std::int64_t>> ms = {{10, 12, 6},  {30, 20, 40}, {20, 20, 21},
                                                     {50, 40, 30}, {5, 4, 3},    {9, 9, 2}};
  for (std::size_t cycle = 2; cycle <= ms.size(); ++cycle)
    for (const bool blocking : {false, true}) {
      Program program;
      Learner::Settings settings;
      settings.by_own_time = blocking;
      const int site = program.add_site(
          3, in_cycle({ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(cycle)}), settings);
      const auto call = [&] {
        return blocking ? program.blocking_call(site, 1'000'000) : program.call(site);
      };
      for (std::size_t i = 0; i < 200 * cycle; ++i) call();
      ASSERT_EQ(program.learner(site).cycle(), cycle);
      const int winners[] = {2, 1, 1, 2, 2, 2};
      int others = 0;  // in trials that were put off
      for (std::size_t i = 0; i < 1000 * cycle; ++i) others += call() != winners[i % cycle];
      EXPECT_LT(others, static_cast<int>(9 * cycle));
      for (std::size_t i = 0; i < cycle; ++i) EXPECT_EQ(call(), winners[i]) << cycle;
      for (std::size_t position = 0; position < cycle; ++position) {
        const auto found = program.learner(site).found(position);
        EXPECT_TRUE(found.settled);
        EXPECT_EQ(found.way, winners[position]);
      }
    }
}

// Each has calls of 10 us, at which nothing could be hidden, and for which nothing is tried.
TEST(Learner, OfACycleOnlyWhatIsLongIsTried) {
  Program program;
  std::map<int, int> taken;
  const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
    const std::int64_t ms[] = {10, 12, 6};
    if (call % 3 == 1) ++taken[way];
    return call % 3 == 1 ? std::int64_t{10'000} : with_noise(ms[way] * 1'000'000, rank, call);
  });
  while (program.learner(site).cycle() == 1) program.call(site);
  taken.clear();
  for (int call = 0; call < 600; ++call) program.call(site);
  EXPECT_EQ(taken.size(), 1u);
  while (program.learner(site).found().calls % 3 != 0) program.call(site);
  for (const int winner : {2, 0, 2}) EXPECT_EQ(program.call(site), winner);
  const auto found = program.learner(site).found(1);
  EXPECT_EQ(found.median_ns[0], 10'000);  // as it was watched
  EXPECT_EQ(found.pairs, 0);
}

// A call more than usual, such as in the step that writes a file: who has the number of the one has
// the work of the other from then on.
TEST(Learner, ACycleThatIsOutOfStepIsFoundAnew) {
  Program program;
  std::uint32_t skipped = 0;
  const std::int64_t ms[][3] = {{10, 12, 6}, {30, 20, 40}};
  const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
    return with_noise(ms[(call + skipped) % 2][way] * 1'000'000, rank, call);
  });
  for (int call = 0; call < 200; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
  EXPECT_EQ(program.call(site), 1);
  skipped = 1;
  for (int call = 0; call < 3000; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 1);
  EXPECT_EQ(program.call(site), 2);
}

// What was found is said until something else is. Meanwhile each call goes the way of the one that
// it is most like.
TEST(Learner, ACycleThatIsLookedAtAnewIsKeptUntilThen) {
  Program program;
  std::int64_t hiccup_ns = 0;
  const std::int64_t ms[][3] = {{10, 12, 6}, {30, 20, 40}};
  const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
    return with_noise(ms[call % 2][way] * 1'000'000, rank, call) + hiccup_ns;
  });
  for (int call = 0; call < 300; ++call) program.call(site);
  const Learner& learner = program.learner(site);
  const auto on_trial = learner.found().calls_on_trial;
  hiccup_ns = 50'000'000;
  for (int call = 0; call < 200 && !learner.is_watching(); ++call) program.call(site);
  hiccup_ns = 0;
  ASSERT_TRUE(learner.is_watching());
  for (std::uint64_t call = learner.found().calls; call < 1000; ++call) {
    const int way = program.call(site);
    if (learner.found().calls_on_trial > on_trial) break;
    EXPECT_EQ(way, call % 2 ? 1 : 2) << call;
    EXPECT_EQ(learner.cycle(), 2u);
    EXPECT_EQ(learner.found(0).way, 2);
    EXPECT_EQ(learner.found(1).way, 1);
    EXPECT_GT(learner.found(1).pairs, 0);
  }
  EXPECT_GT(learner.found().calls_on_trial, on_trial);
}

TEST(Learner, ACycleThatEndsIsLearntAboutAsOne) {
  Program program;
  bool is_over = false;
  const std::int64_t ms[][3] = {{10, 12, 6}, {30, 20, 40}, {30, 5, 20}};
  const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
    return with_noise(ms[is_over ? 2 : call % 2][way] * 1'000'000, rank, call);
  });
  for (int call = 0; call < 200; ++call) program.call(site);
  is_over = true;
  for (int call = 0; call < 3000; ++call) program.call(site);
  EXPECT_EQ(program.learner(site).cycle(), 1u);
  for (int call = 0; call < 10; ++call) EXPECT_EQ(program.call(site), 1);
}

// Times at random, of two sizes, are no cycle; a single one that is long is none.
TEST(Learner, WhatHasNoPatternIsNoCycle) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Program program;
    const int site = program.add_site(3, [&](int, int way, std::uint32_t call) {
      const std::int64_t ms[] = {10, 12, 6};
      const std::uint32_t mixed = (call + 1000 * seed) * 2654435761u >> 16;
      const std::int64_t factor = seed % 2 ? 1 + mixed % 3 : mixed % 16 == 0 ? 8 : 1;
      return ms[way] * factor * 1'000'000;
    });
    for (int call = 0; call < 500; ++call) {
      program.call(site);
      EXPECT_EQ(program.learner(site).cycle(), 1u) << seed;
    }
  }
}

TEST(Learner, ACycleThatIsKnownIsTakenFromTheFirstCall) {
  for (const bool conditional : {false, true}) {
    Program program;
    Learner::Settings settings;
    settings.known = {{2, 6'100'000}, {1, 20'300'000}};
    if (conditional) settings.conditional = 2;
    const int site = program.add_site(3, in_cycle({{10, 12, 6}, {30, 20, 40}}), settings);
    if (conditional)
      for (int call = 0; call < 10; ++call) program.call(site);
    for (int call = 0; call < 600; ++call) EXPECT_EQ(program.call(site), call % 2 ? 1 : 2);
    EXPECT_EQ(program.learner(site).found().calls_on_trial, 0u);
    EXPECT_TRUE(program.learner(site).found(1).settled);
  }
}

TEST(Learner, ACycleThatIsKnownAndOutOfStepIsFoundAnew) {
  Program program;
  Learner::Settings settings;
  settings.known = {{1, 20'300'000}, {2, 6'100'000}};
  const int site = program.add_site(3, in_cycle({{10, 12, 6}, {30, 20, 40}}), settings);
  for (int call = 0; call < 300; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
  EXPECT_EQ(program.call(site), 1);
}

TEST(Learner, SitesTryTheirWaysOneAfterTheOther) {
  Program program;
  const int one = program.add_site(3, ways_of({10, 6, 12}));
  const int other = program.add_site(3, ways_of({10, 12, 6}));
  const auto on_trial = [&](int site) { return program.learner(site).found().calls_on_trial; };
  for (int call = 0; call < 60; ++call) {
    const auto before_one = on_trial(one), before_other = on_trial(other);
    program.call(one);
    program.call(other);
    EXPECT_FALSE(on_trial(one) > before_one && on_trial(other) > before_other) << call;
  }
  EXPECT_GT(on_trial(one), 0u);
  EXPECT_GT(on_trial(other), 0u);
}

// Its median is less, but it was as often slower.
TEST(Learner, WhatWinsHalfOfTheRoundsOnlyIsLeftToTheLibrary) {
  Program program(1);
  std::size_t tried = 0;
  const int site = program.add_site(3, [&](int, int way, std::uint32_t) {
    const std::int64_t own_ms[] = {8, 11, 8, 11, 8, 11};
    const std::int64_t ms = way == 2 ? own_ms[tried++ % 6] : way == kNative ? 10 : 20;
    return ms * 1'000'000;
  });
  for (int call = 0; call < 60; ++call) program.call(site);
  EXPECT_GT(tried, 3u);
  EXPECT_EQ(program.call(site), kNative);
}

TEST(Learner, WhatIsAsFastAsTheLibraryStaysTheLibrarys) {
  Program program;
  const int site = program.add_site(4, ways_of({1000, 1000, 995, 1000}));
  for (int call = 0; call < 60; ++call) program.call(site);
  EXPECT_EQ(program.call(site), kNative);
}

// By 3 or 4 %, in every round, which are more than enough.
TEST(Learner, WhatIsAlwaysALittleFasterThanTheLibraryIsTaken) {
  for (const std::int64_t best : {970, 960}) {
    Program program(1);
    const int site = program.add_site(4, [&](int, int way, std::uint32_t call) {
      const std::int64_t us[] = {1200, 1000, best, 1100};
      return us[way] * 1000 + call % 5 * 1000;
    });
    for (int call = 0; call < 2000; ++call) program.call(site);
    EXPECT_EQ(program.call(site), 2) << best;
  }
}

// The same, but not in every round.
TEST(Learner, WhatIsMostlyALittleFasterThanTheLibraryIsNot) {
  Program program(1);
  std::size_t tried = 0;
  const int site = program.add_site(3, [&](int, int way, std::uint32_t) {
    const std::int64_t own_us[] = {970, 970, 1050};
    const std::int64_t us = way == 2 ? own_us[tried++ % 3] : way == kNative ? 1000 : 2000;
    return us * 1000;
  });
  for (int call = 0; call < 60; ++call) program.call(site);
  EXPECT_GT(tried, 8u);
  EXPECT_EQ(program.call(site), kNative);
}

TEST(Learner, AWayThatIsTwiceAsSlowIsMetTwiceAtMost) {
  Program program;
  const int site = program.add_site(4, ways_of({10, 10, 20, 11}));
  int met = 0;
  for (int call = 0; call < 200; ++call) met += program.call(site) == 2;
  EXPECT_GE(met, 1);
  EXPECT_LE(met, 2);
}

TEST(Learner, TheSlowestRankCounts) {
  Program program;
  const int site = program.add_site(3, [](int rank, int way, std::uint32_t call) {
    const std::int64_t ms = way == 2 ? (rank == 0 ? 2 : 14) : 10;
    return with_noise(ms * 1'000'000, rank, call);
  });
  for (int call = 0; call < 60; ++call) program.call(site);
  EXPECT_NE(program.call(site), 2);
}

TEST(Learner, AChangeOfPhaseIsFoundWithin100Calls) {
  Program program;
  bool second = false;
  const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
    const std::int64_t first_ms[] = {10, 12, 6}, second_ms[] = {30, 20, 40};
    return with_noise((second ? second_ms : first_ms)[way] * 1'000'000, rank, call);
  });
  for (int call = 0; call < 100; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
  second = true;
  for (int call = 0; call < 100; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 1);
}

TEST(Learner, ASlowWayCostsLessThanOnePerCentOfARun) {
  Program program;
  const int site = program.add_site(4, ways_of({10, 11, 30, 10}));
  std::int64_t least = 0;
  while (program.now_ns() < 10'000'000'000) {
    program.call(site);
    least += 10'200'000;
  }
  const auto found = program.learner(site).found();
  EXPECT_LT(found.trials_cost_ns, 100'000'000);
  EXPECT_LT(program.now_ns() - least, 150'000'000);
}

// What trials cost against the way in use, in a program of two phases in turns, which is learnt
// about again and again: all of it, and that of the first calls on trial.
struct Cost {
  std::int64_t all_ns = 0, first_ns = 0, elapsed_ns = 0;
};
Cost cost_in_phases(double budget_percent) {
  Program program(2, budget_percent);
  std::uint32_t phase = 0;
  const int site = program.add_site(4, [&](int rank, int way, std::uint32_t call) {
    const std::int64_t ms[] = {10, 12, 25, 13};
    return with_noise((phase % 2 + 1) * ms[way] * 1'000'000, rank, call);
  });
  Cost cost;
  for (phase = 0; phase < 40; ++phase) {
    for (int call = 0; call < 200; ++call) {
      program.call(site);
      const auto found = program.learner(site).found();
      if (found.calls_on_trial <= Learner::kFreeSlots) cost.first_ns = found.trials_cost_ns;
    }
  }
  cost.all_ns = program.learner(site).found().trials_cost_ns;
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
  Program program;
  // All are close enough to be tried to the end, and far enough for that to cost something.
  const int site = program.add_site(6, ways_of({100, 130, 120, 120, 110, 110}));
  for (int call = 0; call < 60; ++call) program.call(site);
  const auto early = program.learner(site).found();
  EXPECT_TRUE(early.settled);
  EXPECT_EQ(early.calls_on_trial, 18u);  // one round and two, of all ways
  for (int call = 0; call < 5000; ++call) program.call(site);
  const auto late = program.learner(site).found();
  EXPECT_GT(late.calls_on_trial, early.calls_on_trial);
  EXPECT_EQ(late.way, 0);
  EXPECT_LE(late.trials_cost_ns, program.now_ns() / 100);
}

// Whatever one rank has spent on other communicators counts on all.
TEST(Learner, TheBudgetIsThatOfTheProcessThatHasSpentMost) {
  for (const bool spent : {false, true}) {
    Program program;
    if (spent) program.budget(1).spend(3'600'000'000'000);
    const int site = program.add_site(6, ways_of({100, 130, 120, 120, 110, 110}));
    for (int call = 0; call < 5000; ++call) program.call(site);
    const auto found = program.learner(site).found();
    EXPECT_EQ(found.calls_on_trial == 18u, spent);
    EXPECT_TRUE(found.settled);
  }
}

// A site keeps the rule's way, and what is known is taken, whatever else would be faster.
void expect_nothing_tried(Program& program, Learner::Settings settings) {
  const int rules = program.add_site(3, ways_of({10, 5, 5}), settings);
  settings.known = {{2, 8'000'000}};
  const int known = program.add_site(3, ways_of({10, 5, 50}), settings);
  for (int call = 0; call < 300; ++call) {
    EXPECT_EQ(program.call(rules), 0);
    EXPECT_EQ(program.call(known), 2);
  }
}

TEST(Learner, WithoutABudgetWhatIsKnownIsTakenAndNothingTried) {
  Program program(2, 0);
  Learner::Settings settings;
  expect_nothing_tried(program, settings);
}

TEST(Learner, WhatIsInFlightTogetherIsTriedTogether) {
  for (const int depth : {2, 4, 7, 8}) {
    Program program;
    // A batch takes as long as its slowest way says; its calls but the last follow at once.
    std::int64_t slowest = 0;
    const auto last = static_cast<std::uint32_t>(depth - 1);
    const int site = program.add_site(3, [&](int, int way, std::uint32_t call) {
      const std::int64_t ms[] = {40, 40, 24};
      slowest = std::max(slowest, ms[way]);
      if (call % (last + 1) != last) return std::int64_t{1000};
      return std::exchange(slowest, 0) * 1'000'000;
    });
    for (int call = 0; call < 50 * depth; ++call) program.call(site, call % depth);
    EXPECT_EQ(program.call(site), 2) << depth;
  }
}

TEST(Learner, SitesWithVeryManyInFlightKeepTheRulesWay) {
  Program program;
  const int site = program.add_site(3, ways_of({10, 5, 5}));
  for (int call = 0; call < 20'000; ++call) EXPECT_EQ(program.call(site, call % 64), 0);
  EXPECT_EQ(program.learner(site).found().calls_on_trial, 0u);
  EXPECT_LT(program.comparisons(), 16);
}

TEST(Learner, WhatHasFewerInFlightLaterIsLearntAboutThen) {
  Program program;
  const int site = program.add_site(3, ways_of({10, 12, 5}));
  for (int call = 0; call < 3000; ++call) EXPECT_EQ(program.call(site, call % 40), 0);
  for (int call = 0; call < 3000; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
}

TEST(Learner, WhatAnEarlierRunFoundIsTakenFromTheFirstCall) {
  Program program;
  Learner::Settings settings;
  settings.known = {{2, 8'100'000}};
  const int site = program.add_site(3, ways_of({10, 12, 8}), settings);
  for (int call = 0; call < 300; ++call) EXPECT_EQ(program.call(site), 2);
  EXPECT_EQ(program.learner(site).found().calls_on_trial, 0u);
}

TEST(Learner, WhatNoLongerHoldsIsFoundAnew) {
  Program program;
  Learner::Settings settings;
  settings.known = {{2, 3'000'000}};  // it takes 20 now
  const int site = program.add_site(3, ways_of({10, 12, 20}), settings);
  for (int call = 0; call < 100; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 0);
}

// A round of all, and two more.
TEST(Learner, ManyWaysAreAllTriedThreeTimes) {
  Program program;
  const int site =
      program.add_site(Learner::kMostWays, ways_of({10, 12, 11, 12, 9, 12, 11, 12, 10, 11}));
  for (int call = 0; call < 60; ++call) program.call(site);
  const auto found = program.learner(site).found();
  EXPECT_TRUE(found.settled);
  EXPECT_EQ(found.way, 4);
  EXPECT_GE(found.calls_on_trial, 3 * Learner::kMostWays);
}

TEST(Learner, AWayThatARankCannotTakeIsLeftOut) {
  for (const int without : {-1, 0, 1}) {
    Program program;
    program.leave_without_worker(without);
    Learner::Settings settings;
    settings.conditional = 3;
    const int site = program.add_site(4, ways_of({10, 12, 9, 5}), settings);
    bool taken = false;
    for (int call = 0; call < 60; ++call) taken = program.call(site) == 3 || taken;
    EXPECT_EQ(taken, without < 0);
    EXPECT_EQ(program.call(site), without < 0 ? 3 : 2);
  }
}

TEST(Learner, AWayThatIsKnownButMayBeMissingIsTakenOnceTheRanksHaveAgreed) {
  for (const bool tries : {true, false})
    for (const int without : {-1, 1}) {
      Program program;
      program.leave_without_worker(without);
      Learner::Settings settings;
      settings.conditional = 3;
      settings.tries = tries;
      settings.known = {{3, 5'050'000}};
      const int site = program.add_site(4, ways_of({10, 12, 9, 5}), settings);
      EXPECT_EQ(program.call(site), 0);
      for (int call = 0; call < 10; ++call) program.call(site);
      if (without < 0) {
        for (int call = 0; call < 300; ++call) EXPECT_EQ(program.call(site), 3);
        EXPECT_EQ(program.learner(site).found().calls_on_trial, 0u);
      } else {
        for (int call = 0; call < 300; ++call) EXPECT_NE(program.call(site), 3);
        EXPECT_EQ(program.call(site), tries ? 2 : 0);
      }
    }
}

TEST(Learner, TriesNothingWhereItMayNot) {
  Program program;
  Learner::Settings settings;
  settings.tries = false;
  expect_nothing_tried(program, settings);
}

// What lies between its calls takes longer the faster the call's way is.
TEST(Learner, ABlockingCallIsMeasuredByItsOwnTime) {
  for (const int fastest : {0, 1, 2}) {
    Program program;
    Learner::Settings settings;
    settings.by_own_time = true;
    std::vector<std::int64_t> ms(3, 12);
    ms[static_cast<std::size_t>(fastest)] = 8;
    const int site = program.add_site(3, ways_of(ms), settings);
    int way = 0;
    for (int call = 0; call < 60; ++call)
      way = program.blocking_call(site, way == fastest ? 100'000'000 : 1'000'000);
    EXPECT_EQ(way, fastest);
    const auto found = program.learner(site).found();
    EXPECT_TRUE(found.settled);
    EXPECT_NEAR(static_cast<double>(found.median_ns[static_cast<std::size_t>(fastest)]), 8.2e6,
                3e5);
  }
}

// Such as one in which a rank came late.
TEST(Learner, OneLongBlockingCallDoesNotTakeItFromTheLibrary) {
  Program program(1);
  Learner::Settings settings;
  settings.by_own_time = true;
  int tried = 0;
  const int site = program.add_site(
      3,
      [&](int, int way, std::uint32_t) {
        const bool is_late = way == kNative && tried++ == 0;
        return (is_late ? 100 : way == kNative ? 10 : 12) * std::int64_t{1'000'000};
      },
      settings);
  int way = 0;
  for (int call = 0; call < 60; ++call) way = program.blocking_call(site, 1'000'000);
  EXPECT_GT(tried, 3);
  EXPECT_EQ(way, kNative);
}

TEST(Learner, ASiteThatIsNoLongerCalledGivesItsTurnToOthers) {
  Program program;
  const int one = program.add_site(3, ways_of({10, 6, 12}));
  const int other = program.add_site(3, ways_of({10, 12, 6}));
  for (int call = 0; call < 8; ++call) program.call(one);  // in the midst of its trials
  for (int call = 0; call < 150; ++call) program.call(other);
  EXPECT_EQ(program.call(other), 2);
  for (int call = 0; call < 60; ++call) program.call(one);
  EXPECT_EQ(program.call(one), 1);
}

// Of a site at rest one call in 64 is watched, and a comparison costs little of the time.
TEST(Learner, AtShortPeriodsNothingIsTriedThatNeedsAThread) {
  for (const std::int64_t period_ns : {500, 5'000, 19'000}) {
    Program program;
    const int site = program.add_site(3, [&](int, int, std::uint32_t) { return period_ns; });
    constexpr int kCalls = 200'000;
    int watched = 0;
    for (int call = 0; call < kCalls; ++call) {
      watched += program.learner(site).wants_time();
      EXPECT_EQ(program.call(site), 0);
    }
    EXPECT_EQ(program.learner(site).found().calls_on_trial, 0u);
    EXPECT_LT(watched, kCalls / 50);  // with those between a watch and its effect
    EXPECT_GT(program.comparisons(), 5);
    EXPECT_LT(program.comparisons(), kCalls / 2000 + 10);
  }
}

// Only after a while, at little cost, and what needs a thread not at all.
TEST(Learner, AtShortPeriodsTheLibrarysWayIsComparedWithThatOfCallers) {
  for (const std::int64_t period_ns : {500, 5'000, 12'000})
    for (const int fastest : {0, kNative, 2}) {
      Program program;
      Learner::Settings settings;
      settings.ways_of_short = 0b111;
      int met = 0, watched = 0;
      const int site = program.add_site(
          4,
          [&](int rank, int way, std::uint32_t call) {
            met += way == 3;
            return with_noise(way == fastest ? period_ns : period_ns * 13 / 10, rank, call);
          },
          settings);
      for (int call = 0; call < 1500; ++call) EXPECT_EQ(program.call(site), 0);
      for (int call = 0; call < 200'000; ++call) {
        watched += program.learner(site).wants_time();
        program.call(site);
      }
      EXPECT_EQ(program.call(site), fastest);
      EXPECT_EQ(met, 0);
      const auto found = program.learner(site).found();
      EXPECT_TRUE(found.settled);
      EXPECT_LE(found.calls_on_trial, 64u * 27);
      EXPECT_LT(watched, 6000);
    }
}

// The library sets something up in its first calls, which take long; then it is the fastest.
TEST(Learner, WhatIsShortOnlyAfterItsFirstCallsIsComparedAgain) {
  Program program;
  Learner::Settings settings;
  settings.ways_of_short = 0b111;
  std::map<std::pair<int, int>, int> made;
  const int site = program.add_site(
      3,
      [&](int rank, int way, std::uint32_t call) {
        const bool is_first = made[{rank, way}]++ < (way == kNative ? 40 : 8);
        const std::int64_t us[] = {3, 2, 4};
        return is_first ? std::int64_t{40'000} : with_noise(us[way] * 1000, rank, call);
      },
      settings);
  for (int call = 0; call < 500; ++call) program.call(site);
  EXPECT_TRUE(program.learner(site).found().settled);
  EXPECT_EQ(program.call(site), 0);
  for (int call = 0; call < 500'000; ++call) program.call(site);
  EXPECT_EQ(program.call(site), kNative);
}

// Two of its calls one after the other wait for each other, as no call on trial does.
TEST(Learner, WhatIsFastOnlyOnTrialIsFoundOut) {
  Program program;
  int before = kNative, now = kNative;
  std::uint32_t last_call = 0;
  const int site = program.add_site(4, [&](int rank, int way, std::uint32_t call) {
    if (call != last_call) before = std::exchange(now, way);
    last_call = call;
    const std::int64_t us[] = {1500, 900, 1300, 1400};
    return with_noise((way == kNative && before == kNative ? 2500 : us[way]) * 1000, rank, call);
  });
  for (int call = 0; call < 60; ++call) program.call(site);
  EXPECT_EQ(program.call(site), kNative);
  for (int call = 0; call < 5000; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
  int others = 0;
  for (int call = 0; call < 5000; ++call) others += program.call(site) != 2;
  EXPECT_LT(others, 100);
}

// Such as while the program still sets up its data.
Program::Times short_at_first(const bool& is_long, std::vector<std::int64_t> ms) {
  return [&is_long, ms](int rank, int way, std::uint32_t call) {
    const std::int64_t ns = ms[static_cast<std::size_t>(way)] * 1'000'000;
    return is_long ? with_noise(ns, rank, call) : std::int64_t{5'000};
  };
}

// No later than after about as many calls, up to some thousands.
TEST(Learner, PeriodsThatBecomeLongAreLearntAbout) {
  for (const int short_ones : {10, 100, 1000, 100'000}) {
    Program program;
    bool is_long = false;
    const int site = program.add_site(3, short_at_first(is_long, {10, 12, 6}));
    for (int call = 0; call < short_ones; ++call) EXPECT_EQ(program.call(site), 0);
    EXPECT_EQ(program.learner(site).found().calls_on_trial, 0u);
    is_long = true;
    for (int call = 0; call < 450 + std::min(2 * short_ones, 4500); ++call) program.call(site);
    EXPECT_EQ(program.call(site), 2) << short_ones;
    EXPECT_TRUE(program.learner(site).found().settled);
  }
}

TEST(Learner, PeriodsThatAreShortForAWhileAreLearntAboutAgain) {
  Program program;
  bool is_long = true;
  std::vector<std::int64_t> ms{10, 12, 6};
  const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
    return short_at_first(is_long, ms)(rank, way, call);
  });
  for (int call = 0; call < 200; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
  is_long = false;
  for (int call = 0; call < 2000; ++call) program.call(site);
  is_long = true;
  ms = {10, 5, 12};
  for (int call = 0; call < 5000; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 1);
}

TEST(Learner, BlockingCallsThatBecomeLongAreLearntAbout) {
  Program program;
  Learner::Settings settings;
  settings.by_own_time = true;
  bool is_long = false;
  const int site = program.add_site(3, short_at_first(is_long, {10, 12, 6}), settings);
  for (int call = 0; call < 1000; ++call)
    EXPECT_EQ(program.blocking_call(site, 1'000'000), 0);  // what is between does not count
  EXPECT_EQ(program.learner(site).found().calls_on_trial, 0u);
  is_long = true;
  int way = 0;
  for (int call = 0; call < 3000; ++call) way = program.blocking_call(site, 1'000'000);
  EXPECT_EQ(way, 2);
}

// After a rest, of the library's calls only those are counted that begin with the watch. All that
// are in flight together go the same way even so.
TEST(Learner, AWatchAfterARestSeesHowManyAreInFlight) {
  for (int test = 0; test < 64; ++test) {
    const int depth = 2 + test / 8, begins = test % 8;
    Program program;
    bool is_last = false;
    const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
      const std::int64_t ms[] = {40, 40, 24};
      return is_last ? with_noise(ms[way] * 1'000'000, rank, call) : std::int64_t{1000};
    });
    for (int call = 0; call < 1000 + begins; ++call) program.call(site);
    int counted = 0, of_batch = 0;
    for (int call = 0; call < 1000 * depth; ++call) {
      const int place = call % depth;
      if (place == 0) counted = 0;
      is_last = place == depth - 1;
      const int way = program.call(site, counted);
      const bool is_librarys = way == 0;
      if (!is_librarys || program.learner(site).is_watching()) ++counted;
      if (place == 0) of_batch = way;
      ASSERT_EQ(way, of_batch) << "batches begin at " << begins << ", call " << call;
    }
    EXPECT_EQ(of_batch, depth <= Learner::kMostInFlight ? 2 : 0) << depth << ", " << begins;
  }
}

// The next one may lie where it lay.
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

// Between 'unknown' and its repetition nothing changes.
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

TEST(Learner, SwitchingTakesEveryWay) {
  Program program;
  Learner::Settings settings;
  settings.switches = true;
  settings.seed = 7;
  const int site = program.add_site(4, ways_of({10, 10, 10, 10}), settings);
  std::map<int, int> taken;
  for (int call = 0; call < 200; ++call) ++taken[program.call(site)];
  for (int way = 0; way < 4; ++way) EXPECT_GT(taken[way], 10) << way;
}

}  // namespace
}  // namespace weft
