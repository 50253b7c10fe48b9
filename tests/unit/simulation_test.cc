// The simulator itself: its time model, and what it reports.
#include <gtest/gtest.h>

#include "schedule/verify.h"
#include "simulated_call.h"

namespace weft::test {
namespace {

constexpr SimModel kModel{.latency_us = 10,
                          .bandwidth_bytes_per_us = 100,
                          .message_overhead_us = 1,
                          .reduce_us_per_byte = 0.01,
                          .copy_us_per_byte = 0};

const SimType kInt{{{0, 4}}, 4};

struct Cluster {
  std::vector<std::vector<std::byte>> memory;
  std::vector<SimRank> ranks;
};

Cluster memory_for(int size, std::size_t bytes) {
  Cluster cluster;
  for (int rank = 0; rank < size; ++rank) {
    cluster.memory.emplace_back(2 * bytes);
    auto* origin = cluster.memory.back().data();
    cluster.ranks.push_back({origin, origin + bytes, &kInt, &kInt});
  }
  return cluster;
}

std::vector<Schedule> schedules(Kind kind, const char* name, int size, std::int64_t count) {
  Call call{.size = size, .count = count, .type = &test_types()[0]};
  call.algorithm = find_algorithm(kind, name);
  return build_all(call);
}

TEST(Simulation, AMessageTakesOverheadTransferAndLatency) {
  Cluster cluster = memory_for(2, 4000);
  auto outcome = Simulation(kModel).run(schedules(Kind::bcast, "binomial", 2, 1000), cluster.ranks,
                                        make_operator(Op::sum, {Scalar::i32}));
  ASSERT_TRUE(outcome);
  EXPECT_DOUBLE_EQ(outcome->time_us, 1 + 40 + 10);
  EXPECT_EQ(outcome->messages, 1);
  EXPECT_EQ(outcome->bytes, 4000);
}

TEST(Simulation, TheSendersLinkIsSerial) {
  Cluster cluster = memory_for(4, 4 * 4000);
  auto outcome = Simulation(kModel).run(schedules(Kind::alltoall, "linear", 4, 1000), cluster.ranks,
                                        make_operator(Op::sum, {Scalar::i32}));
  ASSERT_TRUE(outcome);
  // Each rank posts three receives and its first send; then its three transfers follow each other.
  EXPECT_DOUBLE_EQ(outcome->time_us, 4 + 3 * 40 + 10);
}

TEST(Simulation, ReductionsTakeTime) {
  Cluster cluster = memory_for(2, 4000);
  auto outcome = Simulation(kModel).run(schedules(Kind::allreduce, "recursive-doubling", 2, 1000),
                                        cluster.ranks, make_operator(Op::sum, {Scalar::i32}));
  ASSERT_TRUE(outcome);
  EXPECT_DOUBLE_EQ(outcome->time_us, 2 + 40 + 10 + 40);
}

TEST(Simulation, ReportsADeadlock) {
  auto all = schedules(Kind::bcast, "binomial", 3, 10);
  all[1].steps.clear();
  all[1].round_ends.clear();
  Cluster cluster = memory_for(3, 40);
  auto outcome = Simulation(kModel).run(all, cluster.ranks, make_operator(Op::sum, {Scalar::i32}));
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("deadlock"), std::string::npos);
}

TEST(Simulation, ReportsAMessageOfTheWrongSize) {
  auto all = schedules(Kind::bcast, "binomial", 2, 10);
  all[1].steps[0].first.count = 9;
  Cluster cluster = memory_for(2, 40);
  auto outcome = Simulation(kModel).run(all, cluster.ranks, make_operator(Op::sum, {Scalar::i32}));
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("another size"), std::string::npos);
}

TEST(Simulation, HasNoLibraryToCall) {
  const std::vector<Schedule> all{build_library({}, StepKind::library_blocking)};
  Cluster cluster = memory_for(1, 4);
  EXPECT_TRUE(verify(all));
  EXPECT_FALSE(Simulation(kModel).run(all, cluster.ranks, make_operator(Op::sum, {Scalar::i32})));
}

TEST(Simulation, TheChecksOfTheTestsFindAWrongResult) {
  Call call{.size = 3, .count = 5, .op = Op::affine, .type = &test_types()[0]};
  call.algorithm = find_algorithm(Kind::scan, "chain");
  EXPECT_EQ(check(call).failure, "");
  static const Algorithm swapped{Kind::scan, "swapped", Needs::nothing, "", [](Builder& b) {
                                   Shape shape = b.shape();
                                   const Location recv{Buffer::recv, 0};
                                   const Location temp = b.temp(5, Unit::recv);
                                   if (shape.rank > 0) {
                                     b.recv(shape.rank - 1, recv, 5);
                                     b.copy(b.input(), temp, 5);
                                     b.end_round();
                                     b.reduce(temp, recv, 5);
                                   } else {
                                     b.copy(b.input(), recv, 5);
                                   }
                                   b.end_round();
                                   if (shape.rank + 1 < shape.size) b.send(shape.rank + 1, recv, 5);
                                 }};
  call.algorithm = &swapped;
  EXPECT_EQ(check(call).failure, "rank 1: the receive buffer is wrong");
}

}  // namespace
}  // namespace weft::test
