// Execution of schedules on a transport that the test controls: order of steps, waiting, errors.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "schedule/builder.h"
#include "transport/transport.h"

namespace weft {
namespace {

class ScriptedTransport : public Transport {
 public:
  Result<bool> start(const Step& step) override {
    if (fail_start_at-- == 0) return Error{"refused", 17};
    log += step.kind == StepKind::send ? 's' : step.kind == StepKind::recv ? 'r' : 'l';
    return true;
  }
  Result<bool> test() override {
    log += '?';
    if (fail_test) return Error{"broken", 18};
    return complete;
  }

  std::string log;
  bool complete = true;
  bool fail_test = false;
  int fail_start_at = -1;
};

// Returns a schedule of three rounds. Round 1: recv, send; round 2: reduce; round 3: send.
Schedule three_rounds() {
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.size = 2;
  shape.send.count = shape.recv.count = 1;
  Builder b(shape, "test");
  const Location temp = b.temp(1, Unit::recv);
  b.recv(1, temp, 1);
  b.send(1, {Buffer::send, 0}, 1);
  b.end_round();
  b.end_round();  // an empty round, which is dropped
  b.reduce(temp, {Buffer::recv, 0}, 1);
  b.end_round();
  b.send(1, {Buffer::recv, 0}, 1);
  return b.finish();
}

TEST(Execution, GoesOnBehindStepsThatAreDone) {
  const Schedule schedule = three_rounds();
  for (const auto& [done, log] :
       {std::pair{0u, "rs?l?s?"}, {1u, "s?l?s?"}, {2u, "l?s?"}, {3u, "s?"}, {4u, ""}}) {
    ScriptedTransport transport;
    Execution execution(schedule, &transport);
    execution.skip(done);
    EXPECT_TRUE(*execution.advance());
    EXPECT_EQ(transport.log, log);
  }
}

TEST(Execution, RunsAllRoundsInOneCallIfNothingWaits) {
  const Schedule schedule = three_rounds();
  ScriptedTransport transport;
  Execution execution(schedule, &transport);
  auto done = execution.advance();
  ASSERT_TRUE(done);
  EXPECT_TRUE(*done);
  EXPECT_EQ(transport.log, "rs?l?s?");
  EXPECT_EQ(execution.round(), 3u);
}

TEST(Execution, StartsNoStepTwiceWhileARoundWaits) {
  const Schedule schedule = three_rounds();
  ScriptedTransport transport;
  transport.complete = false;
  Execution execution(schedule, &transport);
  EXPECT_FALSE(*execution.advance());
  EXPECT_FALSE(*execution.advance());
  EXPECT_EQ(transport.log, "rs??");
  EXPECT_EQ(execution.round(), 0u);
  transport.complete = true;
  EXPECT_TRUE(*execution.advance());
  EXPECT_EQ(transport.log, "rs???l?s?");
}

// Returns a schedule that reduces node memory with the input and then copies the result.
Schedule reduce_and_copy(Location input, Location copied, Location to) {
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.size = 2;
  shape.send.count = shape.recv.count = 8;
  Builder b(shape, "test");
  b.reduce(input, {Buffer::node, 0}, 4);
  b.copy(copied, to, 4);
  return b.finish();
}

TEST(Execution, CopiesAResultWhileItIsReduced) {
  const Location input{Buffer::send, 0}, sum{Buffer::node, 0}, result{Buffer::recv, 0};
  const auto fused = [](const Schedule& schedule) { return schedule.steps[0].fused; };
  EXPECT_EQ(fused(reduce_and_copy(input, sum, result)), Fused::with_next);
  EXPECT_EQ(fused(reduce_and_copy(result, sum, result)), Fused::with_next);
  // The copy overwrites an operand that is still to be read.
  EXPECT_EQ(fused(reduce_and_copy(result, sum, result + 1)), Fused::no);
  EXPECT_EQ(fused(reduce_and_copy(input, sum + 1, result)), Fused::no);
  EXPECT_EQ(fused(reduce_and_copy(input, sum, sum + 4)), Fused::no);
  // The copy goes to another rank, whose input may lie in its result.
  const Location others{Buffer::send, 0, 1}, to_other{Buffer::recv, 0, 1};
  EXPECT_EQ(fused(reduce_and_copy(others, sum, to_other)), Fused::with_next);
  EXPECT_EQ(fused(reduce_and_copy(others, sum, to_other + 1)), Fused::no);
  EXPECT_EQ(fused(reduce_and_copy(input, sum, to_other + 1)), Fused::with_next);

  const Schedule schedule = reduce_and_copy(input, sum, result + 1);
  const auto bytes = static_cast<std::int64_t>(4 * schedule.shape.recv.extent);
  for (const Kernel kernel : {find_kernel(Element::uint8, Operator::sum), Kernel{}}) {
    std::vector<std::byte> send(8, std::byte{1}), node(8, std::byte{2}), recv(8, std::byte{0});
    Operands operands{{send.data(), recv.data(), nullptr, node.data()}, kernel, nullptr};
    EXPECT_EQ(operands.carry_out(schedule.steps[0]), kernel != nullptr);
    EXPECT_EQ(recv[1], kernel ? std::byte{3} : std::byte{0});
    EXPECT_TRUE(operands.carry_out(schedule.steps[1]));
    const std::byte wanted =
        kernel ? std::byte{3}
               // Without a kernel, the transport reduces, which it has not done yet.
               : std::byte{2};
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(recv[static_cast<std::size_t>(i)], i >= 1 && i <= bytes ? wanted : std::byte{0})
          << i;
  }
}

TEST(Execution, ReportsWhatStartRefuses) {
  const Schedule schedule = three_rounds();
  ScriptedTransport transport;
  transport.fail_start_at = 1;
  Execution execution(schedule, &transport);
  auto done = execution.advance();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "refused");
  EXPECT_EQ(done.error().mpi_code, 17);
  EXPECT_EQ(transport.log, "r");
}

TEST(Execution, ReportsWhatTestFinds) {
  const Schedule schedule = three_rounds();
  ScriptedTransport transport;
  transport.fail_test = true;
  Execution execution(schedule, &transport);
  auto done = execution.advance();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().mpi_code, 18);
}

// Ranks 0 and 2 share memory. Round 1: send, wait for rank 2, receive.
Schedule blocked_by_rank_2() {
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.size = 3;
  shape.send.count = shape.recv.count = 1;
  shape.nodes = std::make_shared<const Nodes>(std::vector{0, 1, 0});
  Builder b(shape, "test");
  b.send(1, {Buffer::send, 0}, 1);
  b.wait(2, 1);
  b.recv(1, {Buffer::recv, 0}, 1);
  return b.finish();
}

TEST(Execution, BringsMessagesForwardWhileAWaitBlocksTheirRound) {
  const Schedule schedule = blocked_by_rank_2();
  const std::int64_t buffer_bytes = 2 * kSlotBytes;
  const auto bytes = static_cast<std::size_t>(NodeBuffers::bytes(2, buffer_bytes));
  std::vector<std::uint64_t> memory(bytes / sizeof(std::uint64_t));
  auto* begin = reinterpret_cast<std::byte*>(memory.data());
  NodeBuffers of_rank_0(begin, 0, 2, buffer_bytes), of_rank_2(begin, 1, 2, buffer_bytes);
  const NodeBufferUse turn = of_rank_0.next(Ends::in_order, schedule);
  ScriptedTransport transport;
  transport.complete = false;
  Execution execution(schedule, &transport, nullptr, &turn);
  EXPECT_FALSE(*execution.advance());
  EXPECT_FALSE(*execution.advance());
  EXPECT_EQ(transport.log, "s??");
  of_rank_2.next(Ends::in_order, schedule).signal(1);
  EXPECT_FALSE(*execution.advance());
  EXPECT_EQ(transport.log, "s??r?");
  transport.complete = true;
  EXPECT_TRUE(*execution.advance());
}

TEST(Execution, AnEmptyScheduleIsDone) {
  Shape shape;
  shape.kind = Kind::barrier;
  const Schedule schedule = build(*find_algorithm(Kind::barrier, "dissemination"), shape);
  ScriptedTransport transport;
  EXPECT_TRUE(*Execution(schedule, &transport).advance());
  EXPECT_EQ(transport.log, "");
}

TEST(Builder, KnowsWhetherOthersWaitForProgress) {
  EXPECT_TRUE(three_rounds().sends_after_first_round);
  EXPECT_EQ(three_rounds().most_posted, 2u);
}

// With recursive doubling, the last of three ranks only receives, twice.
TEST(Builder, KnowsWhetherSendersWaitForALaterReceive) {
  Shape shape;
  shape.kind = Kind::exscan;
  shape.size = 3;
  shape.rank = 2;
  shape.send.count = shape.recv.count = 1;
  shape.send.size = shape.recv.size = shape.send.extent = shape.recv.extent = 4;
  const Schedule schedule = build(*find_algorithm(Kind::exscan, "recursive-doubling"), shape);
  EXPECT_FALSE(schedule.sends_after_first_round);
  EXPECT_TRUE(schedule.receives_after_first_round);
  EXPECT_TRUE(schedule.is_awaited());
}

TEST(Builder, LaysOutTempForElementsThatBeginBeforeTheirOrigin) {
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.recv = {
      .count = 3, .size = 12, .extent = 24, .true_lb = -4, .true_extent = 20, .plain = false};
  Builder b(shape, "test");
  const Location first = b.temp(3, Unit::recv);
  const Location second = b.temp(5, Unit::byte);
  EXPECT_EQ(first.offset % 64, 0);
  EXPECT_GE(first.offset + shape.recv.true_lb, 0);
  EXPECT_EQ(second.offset % 64, 0);
  EXPECT_GE(second.offset, first.offset + 2 * 24 + 16);
  EXPECT_EQ(b.finish().temp_bytes % 64, 0);
}

TEST(Builder, TheLibraryDoesTheWholeCollectiveInOneStep) {
  const Schedule schedule = build_library({}, StepKind::library_nonblocking);
  ASSERT_EQ(schedule.steps.size(), 1u);
  EXPECT_EQ(schedule.steps[0].kind, StepKind::library_nonblocking);
  EXPECT_EQ(schedule.rounds(), 1u);
  EXPECT_STREQ(schedule.algorithm, "library");
}

}  // namespace
}  // namespace weft
