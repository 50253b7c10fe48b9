// The learner where the way in use still takes about as long, but another one would win by now.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "learner_program.h"
#include "select/learner.h"

namespace weft {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Learner::Settings known(int way, std::vector<std::int64_t> ways_ms, int depth = 1) {
  for (std::int64_t& ms : ways_ms) ms *= kMs;
  Learner::Settings settings;
  const std::int64_t period_ns = ways_ms[static_cast<std::size_t>(way)];
  settings.known = {{way, period_ns, depth, std::move(ways_ms)}};
  return settings;
}

// The library's own against Weft's, and Weft's against the library's own. Within the free slots.
TEST(Learner, AKnownWayThatIsBeatenByNowIsLearntAboutAnew) {
  for (const int before : {kNative, 2}) {
    Program program(2, 0.001);
    const std::vector<std::int64_t> now_ms = {120, before == kNative ? 110 : 80,
                                              before == kNative ? 80 : 110};
    const int site = program.add_site(3, ways_of(now_ms), known(before, {120, 100, 100}));
    for (int call = 0; call < 80; ++call) program.call(site);
    const auto found = program.learner(site).found();
    EXPECT_TRUE(found.is_new());
    EXPECT_EQ(found.way, 3 - before);
    for (int call = 0; call < 50; ++call) EXPECT_EQ(program.call(site), 3 - before);
  }
}

TEST(Learner, ASettledWayThatIsBeatenByNowIsLearntAboutAnew) {
  Program program;
  bool is_later = false;
  const int site = program.add_site(3, [&](int rank, int way, std::uint32_t call) {
    const std::int64_t first_ms[] = {110, 100, 80}, later_ms[] = {110, 70, 95};
    return with_noise((is_later ? later_ms : first_ms)[way] * kMs, rank, call);
  });
  for (int call = 0; call < 300; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
  is_later = true;
  for (int call = 0; call < 700; ++call) program.call(site);
  EXPECT_EQ(program.call(site), kNative);
}

// Of a batch, and at one position of a cycle.
TEST(Learner, ABatchIsComparedWithItsRivalAsAWhole) {
  for (const int depth : {2, 5, 8}) {
    Program program(2, 0.001);
    const auto batch = static_cast<std::uint32_t>(depth);
    bool is_mixed = false;
    int of_batch = 0;
    const int site = program.add_site(
        3,
        [&](int rank, int way, std::uint32_t call) {
          if (call % batch == 0) of_batch = way;
          is_mixed = is_mixed || way != of_batch;
          const std::int64_t ms[] = {120, 80, 110};
          return call % batch + 1 == batch ? with_noise(ms[way] * kMs * depth, rank, call)
                                           : std::int64_t{1000};
        },
        known(2, {120, 100, 100}, depth));
    for (int call = 0; call < 80 * depth; ++call) program.call(site, call % depth);
    EXPECT_EQ(program.call(site), kNative) << depth;
    EXPECT_FALSE(is_mixed) << depth;
  }
}

// One call by itself, before the batches or between them. Of the library's calls only those count
// as in flight that are watched.
TEST(Learner, ABatchIsComparedWithItsRivalAsAWholeWhereverBatchesBegin) {
  for (const int test : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const int depth = 2 + test / 2, rival = test % 2 == 0 ? 2 : kNative, in_use = 3 - rival;
    for (const int alone : {0, 90}) {
      Program program(2, 0.001);
      bool is_last = false;
      const int site = program.add_site(
          3,
          [&](int rank, int way, std::uint32_t call) {
            const std::int64_t ms[] = {120, way == rival ? 80 : 110, way == rival ? 80 : 110};
            return is_last ? with_noise(ms[way] * kMs * depth, rank, call) : std::int64_t{1000};
          },
          known(in_use, {120, 100, 100}, depth));
      int counted = 0, of_batch = 0;
      const auto make_call = [&](bool begins, bool ends) {
        if (begins) counted = 0;
        is_last = ends;
        const int way = program.call(site, counted);
        if (way != kNative || program.learner(site).is_watching()) ++counted;
        if (begins) of_batch = way;
        EXPECT_EQ(way, of_batch) << depth << ", " << alone;
      };
      for (int batch = 0; batch < 150; ++batch) {
        if (batch == alone) make_call(true, true);
        for (int place = 0; place < depth; ++place) make_call(place == 0, place + 1 == depth);
      }
      EXPECT_EQ(of_batch, rival) << depth << ", " << alone;
    }
  }
}

TEST(Learner, EachPositionIsComparedWithItsRival) {
  Program program(2, 0.001);
  Learner::Settings settings;
  settings.known = {{2, 30 * kMs, 1, {40 * kMs, 34 * kMs, 30 * kMs}},
                    {2, 100 * kMs, 1, {120 * kMs, 110 * kMs, 100 * kMs}}};
  const int site = program.add_site(
      3,
      [&](int rank, int way, std::uint32_t call) {
        const std::int64_t ms[][3] = {{40, 35, 30}, {120, 80, 110}};
        return with_noise(ms[call % 2][way] * kMs, rank, call);
      },
      settings);
  for (int call = 0; call < 500; ++call) program.call(site);
  EXPECT_EQ(program.call(site), 2);
  EXPECT_EQ(program.call(site), kNative);
}

// One call of the rival in each round, and few rounds.
TEST(Learner, AWayThatHoldsMeetsItsRivalSeldom) {
  Program program;
  const int site = program.add_site(3, ways_of({12, 10, 8}), known(2, {12, 10, 8}));
  int others = 0;
  for (int call = 0; call < 100'000; ++call) others += program.call(site) != 2;
  EXPECT_GE(others, 2);
  EXPECT_LE(others, 120);
  const auto found = program.learner(site).found();
  EXPECT_FALSE(found.is_new());
  EXPECT_LT(found.trials_cost_ns, program.now_ns() / 1000);
}

// By the budget alone, so not in a short run.
TEST(Learner, ARivalThatIsClearlySlowerIsMetWithinTheBudget) {
  Program program;
  const int site = program.add_site(3, ways_of({12, 40, 8}), known(2, {12, 40, 8}));
  for (int call = 0; call < 390; ++call) EXPECT_EQ(program.call(site), 2);
  int others = 0;
  for (int call = 0; call < 100'000; ++call) others += program.call(site) != 2;
  EXPECT_GE(others, 1);
  EXPECT_LT(program.learner(site).found().trials_cost_ns, program.now_ns() / 100);
}

// The way in use was held up in their first round.
TEST(Learner, ARivalThatWasLuckyOnceIsMetWithinTheBudget) {
  Program program;
  std::uint32_t last_met = 0;
  int met = 0;
  std::uint64_t on_trial = 0;
  const int site = program.add_site(
      3,
      [&](int rank, int way, std::uint32_t call) {
        const auto now_on_trial = program.learner(0).found().calls_on_trial;
        if (now_on_trial != std::exchange(on_trial, now_on_trial))
          met = call - std::exchange(last_met, call) > 50 ? 1 : met + 1;
        const bool is_held_up = call == last_met && met <= 2 && way == 2;
        const std::int64_t ms[] = {12, 40, is_held_up ? 60 : 8};
        return with_noise(ms[way] * kMs, rank, call);
      },
      known(2, {12, 40, 8}));
  for (int call = 0; call < 20'000; ++call) {
    program.call(site);
    ASSERT_LE(program.learner(site).found().trials_cost_ns, program.now_ns() / 100) << call;
  }
  EXPECT_GT(on_trial, 4u);
}

TEST(Learner, ARivalThatWasClearlySlowerIsTakenWhereItIsFasterByNow) {
  Program program;
  const int site = program.add_site(3, ways_of({12, 5, 8}), known(2, {12, 40, 8}));
  for (int call = 0; call < 600; ++call) program.call(site);
  EXPECT_EQ(program.call(site), kNative);
}

// Whatever chance says.
TEST(Learner, AWayThatIsAsFastAsItsRivalIsNotLearntAboutAgainAndAgain) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    Program program;
    const int site = program.add_site(
        3,
        [&](int rank, int way, std::uint32_t call) {
          const std::int64_t ms[] = {12, 10, 10};
          return with_noise(ms[way] * kMs, rank + way, call * 31 + seed);
        },
        known(2, {12, 10, 10}));
    for (int call = 0; call < 3000; ++call) program.call(site);
    EXPECT_LT(program.learner(site).found().calls_on_trial, 120u) << seed;
  }
}

// Such as a file that the program writes: it is no cost, and says nothing of the rival.
TEST(Learner, WhatHoldsTheProgramUpWhileItsRivalIsMetCostsLittle) {
  Program program(2, 1);
  std::vector<int> met(3);
  const int site = program.add_site(
      3,
      [&](int rank, int way, std::uint32_t call) {
        const bool is_first_of_rival = way != 2 && met[static_cast<std::size_t>(way)]++ == 0;
        return with_noise(is_first_of_rival ? 10'000 * kMs : 100 * kMs, rank, call);
      },
      known(2, {120, 100, 100}));
  for (int call = 0; call < 1500; ++call) program.call(site);
  EXPECT_LT(program.learner(site).found().trials_cost_ns, 1'000 * kMs);
  EXPECT_GT(met[0] + met[1], 2);  // it is met again
}

// As rival or otherwise: a worker that some rank has not got.
TEST(Learner, ARivalThatARankCannotTakeIsNone) {
  for (const int without : {-1, 1}) {
    Program program;
    program.leave_without_worker(without);
    Learner::Settings settings = known(kNative, {120, 100, 105});
    settings.conditional = 2;
    const int site = program.add_site(3, ways_of({120, 100, 80}), settings);
    bool taken = false;
    for (int call = 0; call < 500; ++call) taken = program.call(site) == 2 || taken;
    EXPECT_EQ(taken, without < 0);
  }
}

TEST(Learner, ARivalThatARankCannotTakeHidesNoOther) {
  Program program(2, 0.001);
  program.leave_without_worker(1);
  Learner::Settings settings = known(kNative, {110, 100, 105});
  settings.conditional = 2;
  const int site = program.add_site(3, ways_of({80, 110, 70}), settings);
  for (int call = 0; call < 80; ++call) EXPECT_NE(program.call(site), 2);
  EXPECT_EQ(program.call(site), 0);
}

// It loses its turn while another site is called.
TEST(Learner, AComparisonWithARivalMayBeBrokenOff) {
  Program program;
  const int one = program.add_site(3, ways_of({120, 80, 110}), known(2, {120, 100, 100}));
  const int other = program.add_site(2, ways_of({10, 10}));
  const auto on_trial = [&] { return program.learner(one).found().calls_on_trial; };
  for (int call = 0; call < 100 && on_trial() == 0; ++call) program.call(one);
  for (int call = 0; call < 200; ++call) program.call(other);
  for (int call = 0; call < 200; ++call) program.call(one);
  EXPECT_EQ(program.call(one), kNative);
}

}  // namespace
}  // namespace weft
