// Schedules in sections: together they are the whole one, whatever the ranks, the data and the
// number of laps in a section; and an operation carries one after the other out.
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

void add_rounds(const Schedule& section, std::vector<std::string>& rounds) {
  std::uint32_t begin = 0;
  for (const std::uint32_t end : section.round_ends) {
    rounds.push_back(words(section, begin, end));
    begin = end;
  }
  EXPECT_EQ(begin, section.steps.size());
}

// How many sections there are.
int expect_whole(const Algorithm& algorithm, const Shape& shape, int laps) {
  std::vector<std::string> whole, together;
  const Schedule all = build(algorithm, shape);
  add_rounds(all, whole);
  EXPECT_EQ(all.next_section, nullptr);
  Schedule section = build_in_sections(algorithm, shape, laps);
  const std::uint32_t most_posted = section.most_posted;
  EXPECT_EQ(section.temp_bytes, all.temp_bytes);
  EXPECT_TRUE(section.sends_after_first_round || !all.sends_after_first_round);
  EXPECT_TRUE(section.receives_after_first_round || !all.receives_after_first_round);
  add_rounds(section, together);
  int sections = 1;
  for (; section.next_section; ++sections) {
    EXPECT_FALSE(stands_alone(section, true));
    EXPECT_TRUE(section.program.empty());
    section = section.next_section(std::move(section));
    EXPECT_LE(section.most_posted, most_posted);
    add_rounds(section, together);
  }
  EXPECT_EQ(whole, together) << algorithm.name << " of " << shape.size << " ranks, rank "
                             << shape.rank << ", " << laps << " laps a section";
  return sections;
}

TEST(Sections, TogetherAreTheWholeSchedule) {
  std::set<std::string> in_sections;
  for (const Algorithm& algorithm : algorithms()) {
    if (!sim::is_simulated(algorithm.kind) || needs_memory(algorithm.needs)) continue;
    for (const int ranks : {1, 2, 3, 4, 7, 8, 9})
      for (const std::int64_t bytes : {0, 24, 72, 4096}) {
        Shape shape = shape_of(algorithm.kind, ranks, bytes);
        for (const bool in_place : {false, test::has_in_place(algorithm.kind)}) {
          shape.in_place = in_place;
          if (!applies(algorithm, shape)) continue;
          for (shape.rank = 0; shape.rank < ranks; ++shape.rank)
            for (const int laps : {1, 2, 3, 8, 100})
              if (expect_whole(algorithm, shape, laps) > 1)
                in_sections.insert(std::string(kind_name(algorithm.kind)) + " " + algorithm.name);
        }
      }
  }
  EXPECT_EQ(in_sections,
            (std::set<std::string>{"allgather ring", "allreduce ring", "alltoall pairwise",
                                   "bcast scatter-allgather", "reduce_scatter_block pairwise"}));
}

// Whatever a section holds, one of few laps is short.
TEST(Sections, AreShortHoweverManyRanksThereAre) {
  Shape shape = shape_of(Kind::alltoall, 131072, 4096);
  shape.rank = 77;
  Schedule section = build_in_sections(*find_algorithm(Kind::alltoall, "pairwise"), shape, 128);
  EXPECT_EQ(section.rounds(), 128u);
  EXPECT_LE(bytes_of(section), 80u * 1024);
  int rounds = 0, sections = 0;
  for (;; section = section.next_section(std::move(section)), ++sections) {
    rounds += static_cast<int>(section.rounds());
    EXPECT_LE(section.steps.size(), 2u * 128 + 1);
    if (!section.next_section) break;
  }
  EXPECT_EQ(rounds, 131071);
  EXPECT_EQ(sections, 1023);
}

// Every round ends at the second look.
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

TEST(Sections, AreCarriedOutOneAfterTheOtherAndAgainFromTheFirst) {
  const Algorithm& ring = *find_algorithm(Kind::allreduce, "ring");
  Shape shape = shape_of(Kind::allreduce, 7, 4096);
  shape.rank = 3;
  const Schedule whole = build(ring, shape);
  SlowTransport transport;
  CountedOperation operation(std::make_shared<const Schedule>(build_in_sections(ring, shape, 2)),
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
