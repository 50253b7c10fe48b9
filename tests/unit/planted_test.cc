// A planted engine in virtual time: its thread gets every other time slice while the application
// computes, so that it hides exactly half of what could be hidden. It is the oracle of the
// benchmark's figures, with the schedules and rounds that run over MPI.
// tests/cli/test_bench_planted.py applies the formula of `weft bench` to the times, which are
// recorded as properties; tests/mpi/planted.cc sleeps them in real time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>

#include "simulated_call.h"
#include "transport/sim/network.h"
#include "transport/sim/sim_transport.h"

namespace weft::test {
namespace {

constexpr int kRanks = 33;
constexpr int kRounds = 2 * (kRanks - 1);  // rounds of a ring
constexpr int kBlock = 1000;               // elements that travel in a round
constexpr double kRoundUs = 4.0 * kBlock / 100 + 10;
constexpr double kCommunicationUs = kRounds * kRoundUs;
constexpr SimModel kModel{.latency_us = 10,
                          .bandwidth_bytes_per_us = 100,
                          .message_overhead_us = 0,
                          .reduce_us_per_byte = 0,
                          .copy_us_per_byte = 0};

// How often the engine looks at what has arrived: at multiples of `period_us` while the application
// computes, and always afterwards, since the application then waits.
struct Attention {
  double period_us = 0;  // 0: looks always
  double computation_us = 0;

  double next_us(double now_us) const {
    if (period_us == 0 || now_us >= computation_us) return now_us;
    return std::min(std::ceil(now_us / period_us) * period_us, computation_us);
  }
};

// A transport in which a message counts as arrived only from the engine's next look on.
class AttendedTransport : public Transport {
 public:
  AttendedTransport(SimNetwork& network, const Schedule& schedule, std::span<const SimRank> ranks,
                    const SimOperator& op, const Attention& attention)
      : network_(network),
        rank_(schedule.shape.rank),
        attention_(attention),
        leaders_(kModel, op),
        transport_(network, leaders_, kModel, 0, schedule, ranks, op, NodeBufferUse{}) {}

  Result<bool> start(const Step& step) override {
    posted_ = posted_ || step.kind == StepKind::send || step.kind == StepKind::recv;
    return transport_.start(step);
  }

  Result<bool> test() override {
    auto done = transport_.test();
    if (done && *done && posted_) {
      network_.wait_until(rank_, attention_.next_us(network_.clock_us(rank_)));
      posted_ = false;
    }
    return done;
  }

 private:
  SimNetwork& network_;
  int rank_;
  const Attention& attention_;
  SimLeaders leaders_;
  SimTransport transport_;
  bool posted_ = false;
};

// Returns the time that an allreduce of all ranks takes on the slowest one.
double carry_out(const Attention& attention) {
  const std::vector<Schedule> schedules =
      build_all({.algorithm = find_algorithm(Kind::allreduce, "ring"),
                 .size = kRanks,
                 .count = kRanks * kBlock,
                 .type = &test_types()[0]});
  const SimType& type = test_types()[0].type;
  const SimOperator op = make_operator(Op::sum, {Scalar::i32});
  SimNetwork network(kModel, kRanks);
  std::vector<std::vector<std::byte>> memory(2 * kRanks,
                                             std::vector<std::byte>(4 * kRanks * kBlock));
  std::vector<SimRank> buffers;
  std::deque<AttendedTransport> transports;
  std::deque<Execution> executions;
  for (int rank = 0; rank < kRanks; ++rank) {
    buffers.push_back({memory[2 * rank].data(), memory[2 * rank + 1].data(), &type, &type});
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    transports.emplace_back(network, schedules[rank], buffers, op, attention);
    executions.emplace_back(schedules[rank], &transports.back());
  }
  for (int unfinished = kRanks; unfinished > 0;) {
    unfinished = 0;
    for (Execution& execution : executions) {
      auto done = execution.advance();
      EXPECT_TRUE(done);
      if (!done) return 0;
      unfinished += *done ? 0 : 1;
    }
  }
  double time_us = 0;
  for (int rank = 0; rank < kRanks; ++rank) time_us = std::max(time_us, network.clock_us(rank));
  return time_us;
}

// Returns the time of start, computation and wait together.
double together_us(double computation_us, double period_us) {
  return std::max(computation_us, carry_out({period_us, computation_us}));
}

void record(const char* name, double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", us);
  testing::Test::RecordProperty(name, text);
}

TEST(Planted, CommunicationAloneTakesItsRounds) {
  EXPECT_DOUBLE_EQ(carry_out({}), kCommunicationUs);
}

class PlantedHalf : public testing::TestWithParam<int> {};

TEST_P(PlantedHalf, HidesHalfOfTheComputation) {
  const double computation_us = kCommunicationUs * GetParam() / 4;
  const double total_us = together_us(computation_us, 2 * kRoundUs);
  EXPECT_DOUBLE_EQ(total_us, kCommunicationUs + computation_us / 2);
  record("communication_us", carry_out({}));
  record("computation_us", computation_us);
  record("total_us", total_us);
}

// Computation takes 1/4 to 4/4 of the communication's time; with more, more than half is hidden.
INSTANTIATE_TEST_SUITE_P(, PlantedHalf, testing::Values(1, 2, 3, 4));

TEST(Planted, AnEngineThatAlwaysLooksHidesAll) {
  EXPECT_DOUBLE_EQ(together_us(kCommunicationUs, 0), kCommunicationUs);
}

TEST(Planted, AnEngineThatNeverLooksHidesOneRound) {
  const double computation_us = kCommunicationUs;
  EXPECT_DOUBLE_EQ(together_us(computation_us, computation_us), 2 * kCommunicationUs - kRoundUs);
}

}  // namespace
}  // namespace weft::test
