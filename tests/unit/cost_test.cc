// Messages, bytes and rounds of each algorithm equal what its paper says.
#include <gtest/gtest.h>

#include <bit>

#include "simulated_call.h"

namespace weft::test {
namespace {

struct Cost {
  std::int64_t sent_bytes = 0;  // by one rank
  int messages = 0;             // by one rank
  int rounds = 0;               // that send or receive
  int copies = 0;
};

Cost cost(const Schedule& schedule) {
  Cost cost;
  std::uint32_t i = 0;
  for (std::uint32_t end : schedule.round_ends) {
    bool waits = false;
    for (; i < end; ++i) {
      const Step& step = schedule.steps[i];
      waits = waits || step.kind == StepKind::send || step.kind == StepKind::recv;
      cost.copies += step.kind == StepKind::copy ? 1 : 0;
      if (step.kind != StepKind::send) continue;
      ++cost.messages;
      cost.sent_bytes += step.first.count * layout_of(schedule.shape, step.first.unit).size;
    }
    cost.rounds += waits ? 1 : 0;
  }
  return cost;
}

// All ranks' schedules for `count` ints.
std::vector<Schedule> schedules(Kind kind, const char* name, int size, std::int64_t count,
                                bool in_place = false) {
  Call call{.size = size, .count = count, .in_place = in_place, .type = &test_types()[0]};
  call.algorithm = find_algorithm(kind, name);
  return build_all(call);
}

int log2_up(int n) {
  return std::bit_width(static_cast<unsigned>(n - 1));
}

TEST(Cost, RingAllreduceSendsTheLeast) {
  for (int p : {2, 3, 5, 8}) {
    const std::int64_t count = 840;  // divisible by all p
    for (const Schedule& s : schedules(Kind::allreduce, "ring", p, count)) {
      EXPECT_EQ(cost(s).sent_bytes, 2 * (p - 1) * count * 4 / p);
      EXPECT_EQ(cost(s).rounds, 2 * (p - 1));
      EXPECT_EQ(cost(s).copies, 0);
      EXPECT_EQ(s.temp_bytes, 0);
    }
  }
}

TEST(Cost, RabenseifnerSendsTheLeastInLogarithmicRounds) {
  for (int p : {2, 4, 8, 16}) {
    for (const Schedule& s : schedules(Kind::allreduce, "rabenseifner", p, 1024)) {
      EXPECT_EQ(cost(s).sent_bytes, 2 * (p - 1) * 1024 * 4 / p);
      EXPECT_EQ(cost(s).rounds, 2 * log2_up(p));
      EXPECT_EQ(cost(s).copies, 0);
    }
  }
}

TEST(Cost, RecursiveDoublingTakesLogarithmicRounds) {
  for (int p : {2, 4, 8, 16}) {
    for (const Schedule& s : schedules(Kind::allreduce, "recursive-doubling", p, 10)) {
      EXPECT_EQ(cost(s).rounds, log2_up(p));
      EXPECT_EQ(cost(s).sent_bytes, log2_up(p) * 40);
      EXPECT_LE(cost(s).copies, 1);
    }
  }
}

TEST(Cost, RecursiveDoublingOnTwoRanksIsOneExchange) {
  for (const Schedule& s : schedules(Kind::allreduce, "recursive-doubling", 2, 10)) {
    EXPECT_EQ(s.rounds(), 2u);  // the exchange, the reduction
    EXPECT_EQ(cost(s).rounds, 1);
    EXPECT_EQ(s.most_posted, 2u);
    EXPECT_FALSE(s.sends_after_first_round);
    EXPECT_EQ(cost(s).copies, s.shape.rank);  // rank 1 keeps its operand, while the data travels
  }
}

TEST(Cost, BcastSendsEachByteToEachRankOnce) {
  for (const char* name : {"binomial", "scatter-allgather", "chain"}) {
    for (int p : {2, 3, 5, 8, 13}) {
      std::int64_t sent_bytes = 0;
      for (const Schedule& s : schedules(Kind::bcast, name, p, 1001))
        sent_bytes += cost(s).sent_bytes;
      EXPECT_EQ(sent_bytes, (p - 1) * 1001 * 4) << name << " " << p;
    }
  }
}

TEST(Cost, BcastChainIsPipelined) {
  const std::int64_t count = 4 * 65536 / 4;  // four segments
  const auto all = schedules(Kind::bcast, "chain", 5, count);
  for (const Schedule& s : all) {
    const bool is_end = s.shape.rank == 0 || s.shape.rank == 4;
    EXPECT_EQ(cost(s).rounds, is_end ? 4 : 5);
    EXPECT_EQ(cost(s).messages, s.shape.rank == 4 ? 0 : 4);
    EXPECT_EQ(cost(s).sent_bytes, s.shape.rank == 4 ? 0 : count * 4);
  }
  EXPECT_EQ(cost(schedules(Kind::bcast, "chain", 2, count)[0]).messages, 1);
}

TEST(Cost, AllgatherSendsTheLeast) {
  for (const char* name : {"ring", "recursive-doubling", "bruck"}) {
    for (const Schedule& s : schedules(Kind::allgather, name, 8, 100)) {
      EXPECT_EQ(cost(s).sent_bytes, 7 * 400) << name;
      EXPECT_EQ(cost(s).rounds, std::string(name) == "ring" ? 7 : 3) << name;
    }
  }
  EXPECT_EQ(cost(schedules(Kind::allgather, "bruck", 13, 1)[5]).rounds, 4);
}

TEST(Cost, AlltoallLinearIsOneRound) {
  for (bool in_place : {false, true}) {
    for (const Schedule& s : schedules(Kind::alltoall, "linear", 6, 10, in_place)) {
      EXPECT_EQ(cost(s).rounds, 1);
      EXPECT_EQ(cost(s).messages, 5);
      EXPECT_EQ(cost(s).sent_bytes, 5 * 40);
      EXPECT_FALSE(s.sends_after_first_round);
    }
  }
}

TEST(Cost, AlltoallPairwiseAndBruck) {
  for (const Schedule& s : schedules(Kind::alltoall, "pairwise", 6, 10)) {
    EXPECT_EQ(cost(s).rounds, 5);
    EXPECT_EQ(cost(s).sent_bytes, 5 * 40);
  }
  for (const Schedule& s : schedules(Kind::alltoall, "bruck", 8, 10)) {
    EXPECT_EQ(cost(s).rounds, 3);
    EXPECT_EQ(cost(s).sent_bytes, 3 * 4 * 40);  // half of the blocks in each round
  }
}

TEST(Cost, BarrierReduceAndScan) {
  for (const Schedule& s : schedules(Kind::barrier, "dissemination", 9, 0)) {
    EXPECT_EQ(cost(s).rounds, 4);
    EXPECT_EQ(cost(s).messages, 4);
    EXPECT_EQ(cost(s).sent_bytes, 0);
  }
  for (const char* name : {"binomial", "chain"}) {
    const Kind kind = std::string(name) == "chain" ? Kind::scan : Kind::reduce;
    int messages = 0;
    for (const Schedule& s : schedules(kind, name, 9, 5)) messages += cost(s).messages;
    EXPECT_EQ(messages, 8) << name;
  }
}

TEST(Cost, NothingIsSentForNoElements) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind == Kind::barrier) continue;
    for (const Schedule& s : schedules(algorithm.kind, algorithm.name, 4, 0))
      EXPECT_TRUE(s.steps.empty()) << kind_name(algorithm.kind) << " " << algorithm.name;
  }
}

}  // namespace
}  // namespace weft::test
