// Schedules that are built in batches: together the batches are the whole schedule, whatever the
// ranks, the data and the number of iterations in a batch. An operation executes one batch after
// the other.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "call_layout.h"
#include "coll/algorithm.h"
#include "engine/operation.h"
#include "schedule/schedule_cache.h"
#include "sim/experiment.h"

namespace weft {
namespace {

Shape shape_of(Kind kind, int ranks, std::int64_t bytes) {
  return sim::shape_of(kind, ranks, ranks, {}, bytes, ranks / 2, false);
}

std::string words(const Schedule& schedule, std::uint32_t begin, std::uint32_t end) {
  Schedule round;
  round.shape = schedule.shape;
  round.steps.assign(schedule.steps.begin() + begin, schedule.steps.begin() + end);
  round.round_ends = {end - begin};
  std::string text = print(round);
  for (const Step& step : round.steps) text += std::to_string(static_cast<int>(step.fused));
  return text;
}

void add_rounds(const Schedule& batch, std::vector<std::string>& rounds) {
  std::uint32_t begin = 0;
  for (const std::uint32_t end : batch.round_ends) {
    rounds.push_back(words(batch, begin, end));
    begin = end;
  }
  EXPECT_EQ(begin, batch.steps.size());
}

// Checks that the batches together are the whole schedule. Returns the number of batches.
int expect_whole(const Algorithm& algorithm, const Shape& shape, int iterations) {
  std::vector<std::string> whole, together;
  const Schedule all = build(algorithm, shape);
  add_rounds(all, whole);
  EXPECT_EQ(all.next_batch, nullptr);
  Schedule batch = build_in_batches(algorithm, shape, iterations);
  const std::uint32_t most_posted = batch.most_posted;
  EXPECT_EQ(batch.temp_bytes, all.temp_bytes);
  EXPECT_TRUE(batch.sends_after_first_round || !all.sends_after_first_round);
  EXPECT_TRUE(batch.receives_after_first_round || !all.receives_after_first_round);
  add_rounds(batch, together);
  int batches = 1;
  for (; batch.next_batch; ++batches) {
    EXPECT_FALSE(needs_no_messages(batch, true));
    EXPECT_TRUE(batch.program.empty());
    batch = batch.next_batch(std::move(batch));
    EXPECT_LE(batch.most_posted, most_posted);
    add_rounds(batch, together);
  }
  EXPECT_EQ(whole, together) << algorithm.name << " of " << shape.size << " ranks, rank "
                             << shape.rank << ", " << iterations << " iterations a batch";
  return batches;
}

TEST(Batches, TogetherAreTheWholeSchedule) {
  std::set<std::string> in_batches;
  for (const Algorithm& algorithm : algorithms()) {
    if (!sim::is_simulated(algorithm.kind) || needs_memory(algorithm.needs)) continue;
    for (const int ranks : {1, 2, 3, 4, 7, 8, 9})
      for (const std::int64_t bytes : {0, 24, 72, 4096}) {
        Shape shape = shape_of(algorithm.kind, ranks, bytes);
        for (const bool in_place : {false, test::has_in_place(algorithm.kind)}) {
          shape.in_place = in_place;
          if (!applies(algorithm, shape)) continue;
          for (shape.rank = 0; shape.rank < ranks; ++shape.rank)
            for (const int iterations : {1, 2, 3, 8, 100})
              if (expect_whole(algorithm, shape, iterations) > 1)
                in_batches.insert(std::string(kind_name(algorithm.kind)) + " " + algorithm.name);
        }
      }
  }
  EXPECT_EQ(in_batches,
            (std::set<std::string>{"allgather ring", "allreduce ring", "alltoall pairwise",
                                   "bcast scatter-allgather", "reduce_scatter_block pairwise"}));
}

TEST(Batches, AreShortHoweverManyRanksThereAre) {
  Shape shape = shape_of(Kind::alltoall, 131072, 4096);
  shape.rank = 77;
  Schedule batch = build_in_batches(*find_algorithm(Kind::alltoall, "pairwise"), shape, 128);
  EXPECT_EQ(batch.rounds(), 128u);
  EXPECT_LE(bytes_of(batch), 80u * 1024);
  int rounds = 0, batches = 0;
  for (;; batch = batch.next_batch(std::move(batch)), ++batches) {
    rounds += static_cast<int>(batch.rounds());
    EXPECT_LE(batch.steps.size(), 2u * 128 + 1);
    if (!batch.next_batch) break;
  }
  EXPECT_EQ(rounds, 131071);
  EXPECT_EQ(batches, 1023);
}

// A transport in which every round ends when it is polled for the second time.
class SlowTransport final : public Transport {
 public:
  Result<bool> start(const Step& step) override {
    started.push_back(step);
    return true;
  }
  Result<bool> test() override { return ++looks % 2 == 0; }

  std::vector<Step> started;
  int looks = 0;
};

class CountedOperation final : public Operation {
 public:
  using Operation::Operation;
  int times_finished = 0;

 private:
  void finished(const Error* error) override {
    EXPECT_EQ(error, nullptr);
    ++times_finished;
  }
};

TEST(Batches, AreCarriedOutOneAfterTheOtherAndAgainFromTheFirst) {
  const Algorithm& ring = *find_algorithm(Kind::allreduce, "ring");
  Shape shape = shape_of(Kind::allreduce, 7, 4096);
  shape.rank = 3;
  const Schedule whole = build(ring, shape);
  SlowTransport transport;
  CountedOperation operation(std::make_shared<const Schedule>(build_in_batches(ring, shape, 2)),
                             transport);
  for (int times = 1; times <= 3; ++times) {
    transport.started.clear();
    std::uint32_t before = 0;
    while (!operation.advance()) {
      EXPECT_GE(operation.round(), before);
      before = operation.round();
      EXPECT_EQ(&operation.under_way(), &operation.schedule());
    }
    EXPECT_EQ(operation.round(), whole.rounds());
    EXPECT_EQ(operation.times_finished, times);
    ASSERT_EQ(transport.started.size(), whole.steps.size());
    for (std::size_t i = 0; i < whole.steps.size(); ++i) {
      EXPECT_EQ(transport.started[i].kind, whole.steps[i].kind);
      EXPECT_EQ(transport.started[i].peer, whole.steps[i].peer);
      EXPECT_EQ(transport.started[i].first, whole.steps[i].first);
    }
    operation.rewind();
    EXPECT_FALSE(operation.done());
  }
}

}  // namespace
}  // namespace weft
