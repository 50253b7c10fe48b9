// The verifier catches faults: each test plants one. That it accepts correct schedules is shown by
// every test of an algorithm.
#include "schedule/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "simulated_call.h"

namespace weft::test {
namespace {

std::vector<Schedule> schedules(Kind kind, const char* name, int size, bool in_place = false) {
  Call call{.size = size, .count = 12, .in_place = in_place, .type = &test_types()[0]};
  call.algorithm = find_algorithm(kind, name);
  return build_all(call);
}

Step& nth(Schedule& schedule, StepKind kind, int n = 0) {
  for (Step& step : schedule.steps) {
    if (step.kind == kind && n-- == 0) return step;
  }
  ADD_FAILURE() << "no such step";
  return schedule.steps[0];
}

void drop(Schedule& schedule, std::size_t at) {
  schedule.steps.erase(schedule.steps.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::uint32_t& end : schedule.round_ends) end -= end > at ? 1 : 0;
}

void expect_failure(const std::vector<Schedule>& all, const std::string& part) {
  auto verified = verify(all);
  ASSERT_FALSE(verified) << "expected: " << part;
  EXPECT_NE(verified.error().message.find(part), std::string::npos) << verified.error().message;
}

TEST(Verify, CatchesADroppedReceive) {
  auto all = schedules(Kind::allgather, "ring", 4);
  ASSERT_EQ(all[2].steps[0].kind, StepKind::recv);
  all[2].steps.erase(all[2].steps.begin());
  for (std::uint32_t& end : all[2].round_ends) --end;
  expect_failure(all, "a read of what nothing has written yet");
}

TEST(Verify, CatchesADroppedSend) {
  auto all = schedules(Kind::alltoall, "linear", 4);
  drop(all[1], 3);
  expect_failure(all, "messages from rank 1 to rank 2: 0 sent, 1 received");
}

TEST(Verify, CatchesASwappedPeer) {
  auto all = schedules(Kind::alltoall, "linear", 4);
  std::swap(nth(all[0], StepKind::send, 0).peer, nth(all[0], StepKind::send, 1).peer);
  EXPECT_TRUE(verify(all)) << "the blocks have equal sizes: only their contents tell";
  nth(all[0], StepKind::send, 0).peer = nth(all[0], StepKind::send, 1).peer;
  expect_failure(all, "sent");
}

TEST(Verify, CatchesAPeerThatIsNoOtherRank) {
  for (int peer : {-1, 0, 4}) {
    auto all = schedules(Kind::alltoall, "linear", 4);
    nth(all[0], StepKind::send).peer = peer;
    expect_failure(all, "to or from no other rank");
  }
}

TEST(Verify, CatchesTheWrongSize) {
  auto all = schedules(Kind::bcast, "binomial", 2);
  nth(all[0], StepKind::send).first.count = 11;
  expect_failure(all, "number 1 is sent with 44 bytes and received with 48");
}

TEST(Verify, CatchesOperandsOutsideTheirBuffers) {
  auto all = schedules(Kind::allreduce, "ring", 3);
  nth(all[1], StepKind::send).first.at.offset = 12 * 4;
  expect_failure(all, "outside the send buffer");
  all = schedules(Kind::allreduce, "ring", 3);
  nth(all[1], StepKind::recv).first.at.offset = -4;
  expect_failure(all, "outside the receive buffer");
  all = schedules(Kind::allreduce, "ring", 3, true);
  all[1].temp_bytes = 8;
  expect_failure(all, "outside the temp buffer");
  all = schedules(Kind::allreduce, "ring", 3);
  nth(all[1], StepKind::send).first.at.offset += 2;
  expect_failure(all, "between two elements");
}

TEST(Verify, KnowsThatOnlyTheRootOfAReduceHasAReceiveBuffer) {
  auto all = schedules(Kind::reduce, "binomial", 4);
  nth(all[2], StepKind::recv).first.at = {Buffer::recv, 0};
  expect_failure(all, "outside the receive buffer");
}

TEST(Verify, CatchesWritesToTheSendBuffer) {
  auto all = schedules(Kind::allgather, "ring", 3);
  nth(all[0], StepKind::recv).first.at = {Buffer::send, 0};
  expect_failure(all, "a receive into the send buffer");
  all = schedules(Kind::scan, "chain", 3);
  nth(all[1], StepKind::reduce).into = {Buffer::send, 0};
  expect_failure(all, "a write to the send buffer");
}

// Removes each wait in turn, and expects the verifier to notice.
void expect_each_wait_needed(const Call& call) {
  const std::vector<Schedule> right = build_all(call);
  ASSERT_TRUE(verify(right));
  for (std::size_t rank = 0; rank < right.size(); ++rank) {
    for (std::size_t i = 0; i < right[rank].steps.size(); ++i) {
      if (right[rank].steps[i].kind != StepKind::wait) continue;
      auto all = right;
      drop(all[rank], i);
      EXPECT_FALSE(verify(all)) << call.text() << ": rank " << rank << " without step " << i;
    }
  }
}

// In every algorithm in a node's memory, with one chunk or several, each wait is needed. Algorithms
// whose blocks differ in length are left out: a rank with nothing to read may wait only to stay
// with the others. So is alltoall, where a third rank may have published already, and so are long
// blocks whose lengths only two ranks know.
TEST(Verify, CatchesAWaitTooFewInTheNodesMemory) {
  for (const Algorithm& algorithm : algorithms()) {
    const Kind kind = algorithm.kind;
    const bool may_be_implied = kind == Kind::allgatherv || kind == Kind::reduce_scatter ||
                                kind == Kind::alltoall ||
                                (kind == Kind::reduce && needs_domains(algorithm.needs));
    if (!needs_node(algorithm.needs) || may_be_implied) continue;
    for (const std::int64_t count : {12, 4 * 16 * 1024}) {
      if (count > 12 && !has_known_blocks(kind)) continue;
      Call call{.size = 4, .count = count, .type = &test_types()[0]};
      call.algorithm = &algorithm;
      expect_each_wait_needed(call);
    }
  }
}

// Left out are long vectors of several leaders, one of whose signals can imply another's, and
// blocks that differ, since a rank may wait for one that has no piece to read. The last pieces of
// gathered or scattered blocks are shorter, and may lie where nobody reads.
TEST(Verify, CatchesAWaitTooFewOnSeveralNodes) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!needs_nodes(algorithm.needs)) continue;
    const bool may_be_implied =
        algorithm.needs == Needs::nodes &&
        (algorithm.kind == Kind::allreduce || algorithm.kind == Kind::alltoall ||
         algorithm.kind == Kind::gather || algorithm.kind == Kind::scatter);
    for (const Placing placing : {Placing::pairs, Placing::fours, Placing::cyclic_2})
      for (const std::int64_t count : {12, 12 * 16 * 1024}) {
        if (count > 12 && may_be_implied) continue;
        if (!has_one_count(algorithm.kind)) continue;
        Call call{.size = 6, .count = count, .type = &test_types()[0], .placing = placing};
        call.algorithm = &algorithm;
        if (!applies(algorithm, shape_of(call, 0))) continue;
        expect_each_wait_needed(call);
      }
  }
}

TEST(Verify, CatchesAWaitForARankOfAnotherNode) {
  auto all = schedules(Kind::barrier, "hierarchical", 4);
  ASSERT_EQ(nth(all[1], StepKind::wait).peer, 0);
  nth(all[1], StepKind::wait).peer = 2;
  expect_failure(all, "a wait for no rank of this node");
}

TEST(Verify, CatchesMemoryWhereARankIsAlone) {
  auto all = schedules(Kind::barrier, "hierarchical", 5);
  all[4].node_bytes = kSlotBytes;
  expect_failure(all, "memory of a node where this rank is alone");
}

TEST(Verify, CatchesNodesThatAreNotTheSameOnAllRanks) {
  auto all = schedules(Kind::barrier, "hierarchical", 4);
  all[3].shape.nodes = std::make_shared<const Nodes>(std::vector{0, 1, 0, 1});
  expect_failure(all, "not those of one call");
}

// Data that is received may not have arrived before the round ends, so a signal in the same round
// is too early.
TEST(Verify, CatchesASignalBeforeAMessageIsThere) {
  auto all = schedules(Kind::alltoall, "hierarchical", 4);
  ASSERT_TRUE(verify(all));
  Schedule& speaker = all[1];
  ASSERT_EQ(nth(speaker, StepKind::recv).first.at.buffer, Buffer::node);
  const auto end = std::find_if(
      speaker.round_ends.begin(), speaker.round_ends.end(),
      [&](std::uint32_t next) { return speaker.steps[next].kind == StepKind::signal; });
  ASSERT_NE(end, speaker.round_ends.end());
  ++*end;
  expect_failure(all, "writes what another may be using");
}

TEST(Verify, CatchesASignalTooEarly) {
  auto all = schedules(Kind::allreduce, "node-flat", 3);
  ASSERT_EQ(all[1].steps[0].kind, StepKind::copy);
  ASSERT_EQ(all[1].steps[1].kind, StepKind::signal);
  std::swap(all[1].steps[0], all[1].steps[1]);
  expect_failure(all, "reads what no other is known to have written");
}

TEST(Verify, CatchesAWaitForASignalThatNeverComes) {
  auto all = schedules(Kind::barrier, "node-flat", 3);
  nth(all[0], StepKind::wait).value = 2;
  expect_failure(all, "deadlock: rank 0 never finishes");
}

TEST(Verify, CatchesAnotherLengthThanIsTold) {
  for (const Kind kind : {Kind::gatherv, Kind::scatterv, Kind::alltoallv, Kind::alltoallw}) {
    auto all = schedules(kind, "node-flat", 3);
    ++nth(all[kind == Kind::gatherv ? 1 : 0], StepKind::tell).value;
    expect_failure(all, "expects another number than rank");
    all = schedules(kind, "node-flat", 3);
    nth(all[kind == Kind::gatherv ? 0 : 1], StepKind::check).first.at.offset += 2;
    expect_failure(all, "a number that is no word of the node's memory");
  }
}

TEST(Verify, CatchesOperandsOnASlotsCounter) {
  auto all = schedules(Kind::allreduce, "node-flat", 3);
  nth(all[2], StepKind::copy).second.at.offset = kSlotBytes;
  expect_failure(all, "an operand across a slot's counter");
}

TEST(Verify, CatchesMoreOfTheNodesMemoryThanThereIs) {
  auto all = schedules(Kind::allreduce, "node-flat", 3);
  all[1].node_bytes = most_node_bytes(3) + 1;
  expect_failure(all, "more of the node's memory than there is");
}

TEST(Verify, CatchesRanksThatUseNotAsMuchOfTheNodesMemory) {
  auto all = schedules(Kind::allreduce, "node-flat", 3);
  all[2].node_bytes += kSlotBytes;
  expect_failure(all, "not all ranks of a node use as much of its memory");
}

TEST(Verify, CatchesAFalseClaimToExchangeOnce) {
  auto all = schedules(Kind::allreduce, "node-ring", 3);
  for (Schedule& schedule : all) schedule.exchanges_once = true;
  expect_failure(all, "does not exchange once only");
}

TEST(Verify, CatchesAFalseClaimToBeSynchronizing) {
  auto all = schedules(Kind::bcast, "binomial", 3);
  for (Schedule& schedule : all) schedule.synchronizing = true;
  expect_failure(all, "rank 0 may end before all have begun");
}

// A direct schedule uses other ranks' buffers, which these ranks must show.
TEST(Verify, CatchesUseOfABufferThatIsNotShown) {
  auto all = schedules(Kind::allreduce, "node-direct", 3);
  all[1].shows_input = false;
  expect_failure(all, "uses a buffer that its rank does not show, 1:send");
  all = schedules(Kind::allgather, "node-direct", 3);
  nth(all[0], StepKind::copy).first.at = {Buffer::recv, 0, 1};
  expect_failure(all, "uses a buffer that its rank does not show, 1:recv");
}

TEST(Verify, CatchesWhatReachesBeyondAnothersBuffer) {
  auto all = schedules(Kind::allgather, "node-direct", 3);
  nth(all[2], StepKind::copy).first.at.offset = 4;
  expect_failure(all, "reaches beyond a rank's buffer, 0:send[4, 52)");
}

TEST(Verify, CatchesUseOfABufferThatOthersMayNotReach) {
  auto all = schedules(Kind::bcast, "node-direct", 3);
  ASSERT_EQ(all[1].steps[7].kind, StepKind::agree);
  std::swap(all[1].steps[7], all[1].steps[8]);
  expect_failure(all, "a buffer of another rank before all have agreed");
}

TEST(Verify, CatchesARankThatWouldNotKnowThatAnotherCannotBeSeen) {
  auto all = schedules(Kind::bcast, "node-direct", 3);
  ASSERT_EQ(all[1].steps[4].kind, StepKind::find);
  drop(all[1], 4);  // finds the buffer of rank 2, which shows none
  expect_failure(all, "agrees before it has found all ranks");
}

TEST(Verify, CatchesARankThatGoesOnWhereAnotherDoesNot) {
  auto all = schedules(Kind::bcast, "node-direct", 3);
  ASSERT_EQ(all[0].steps[7].kind, StepKind::agree);
  drop(all[0], 7);
  expect_failure(all, "ranks that would not know alike whether to go on");
}

TEST(Verify, CatchesAnEndWhileOthersReadOrWrite) {
  auto all = schedules(Kind::allgather, "node-direct", 3);
  all[1].steps.pop_back();
  --all[1].round_ends.back();
  expect_failure(all, "rank 1 may end while others use its buffers");
}

TEST(Verify, CatchesAResultThatNobodyWrites) {
  auto all = schedules(Kind::allreduce, "node-direct", 2);
  Schedule& first = all[0];
  for (std::size_t i = 0; i < first.steps.size(); ++i)
    if (first.steps[i].kind == StepKind::copy) drop(first, i);
  expect_failure(all, "before all of its result is there");
}

TEST(Verify, CatchesTwoRanksThatWriteTheSameResult) {
  auto all = schedules(Kind::allreduce, "node-direct", 2);
  nth(all[0], StepKind::copy).second.at.offset = 24;  // rank 1's share
  expect_failure(all, "writes what another may be using");
}

TEST(Verify, CatchesConflictsInARound) {
  auto all = schedules(Kind::allgather, "ring", 4);
  all[0].round_ends.erase(all[0].round_ends.begin());  // the next send needs this round's receive
  expect_failure(all, "two messages that overlap");

  all = schedules(Kind::allreduce, "ring", 3, true);
  all[0].round_ends.erase(all[0].round_ends.begin());  // reduces data that has not arrived yet
  expect_failure(all, "a local step that reads what is being received");

  all = schedules(Kind::scan, "chain", 3);
  Step& copy = nth(all[1], StepKind::copy);
  copy.second.at = nth(all[1], StepKind::recv).first.at;
  expect_failure(all, "a local step that writes what is being received");

  all = schedules(Kind::scan, "chain", 3);
  all[1].round_ends.erase(all[1].round_ends.begin() + 1);  // reduces into data that it sends
  expect_failure(all, "a local step that writes what is being sent");
}

TEST(Verify, CatchesOverlappingOperands) {
  auto all = schedules(Kind::allreduce, "recursive-doubling", 2);
  Step& reduce = nth(all[0], StepKind::reduce);
  reduce.first.at = reduce.second.at;
  expect_failure(all, "operands that overlap");
}

TEST(Verify, CatchesOutputThatNothingWrites) {
  auto all = schedules(Kind::alltoall, "linear", 3);
  ASSERT_EQ(all[0].steps.back().kind, StepKind::copy);
  drop(all[0], all[0].steps.size() - 1);
  expect_failure(all, "an output that nothing writes");
}

TEST(Verify, CatchesASecondWriteToTheSameOutput) {
  auto all = schedules(Kind::allgather, "ring", 3);
  Schedule& schedule = all[0];
  schedule.steps.push_back(nth(schedule, StepKind::copy));
  schedule.round_ends.push_back(schedule.round_ends.back() + 1);
  expect_failure(all, "a second write to the same output");
}

TEST(Verify, CatchesReadsOfTempBeforeAnythingIsThere) {
  auto all = schedules(Kind::allgather, "bruck", 3);
  ASSERT_EQ(all[0].steps[0].kind, StepKind::copy);
  all[0].steps[0].second.at.offset += 2 * 48;
  expect_failure(all, "a read of what nothing has written yet");
}

// Adds a message that the call does not need. Rank `to` receives it into its receive buffer.
void add_message(std::vector<Schedule>& all, int from, int to, Operand source, Operand target) {
  all[from].steps.push_back({.kind = StepKind::send, .peer = to, .first = source, .second = {}});
  all[to].steps.push_back({.kind = StepKind::recv, .peer = from, .first = target, .second = {}});
  for (int rank : {from, to})
    all[rank].round_ends.push_back(static_cast<std::uint32_t>(all[rank].steps.size()));
}

TEST(Verify, CatchesWritesWhereARankGetsNothing) {
  const Operand input{{Buffer::send, 0}, 12, Unit::recv}, output{{Buffer::recv, 0}, 12, Unit::recv};
  auto all = schedules(Kind::exscan, "chain", 3);
  add_message(all, 2, 0, input, output);
  expect_failure(all, "outside the receive buffer");
  all = schedules(Kind::exscan, "chain", 3, true);
  add_message(all, 2, 0, output, output);
  expect_failure(all, "a write to what must stay as it is");
  all = schedules(Kind::gather, "linear", 3);
  add_message(all, 0, 1, {{Buffer::send, 0}, 12, Unit::send}, output);
  expect_failure(all, "outside the receive buffer");
}

TEST(Verify, CatchesWritesToTheOwnBlockInPlace) {
  auto all = schedules(Kind::allgather, "ring", 2, true);
  const Operand own_block{{Buffer::recv, 48}, 12, Unit::recv};
  add_message(all, 0, 1, {{Buffer::recv, 0}, 12, Unit::recv}, own_block);
  expect_failure(all, "a write to what must stay as it is");
  all = schedules(Kind::reduce_scatter_block, "linear", 2, true);
  add_message(all, 0, 1, {{Buffer::recv, 0}, 12, Unit::recv}, own_block);
  expect_failure(all, "a write to what must stay as it is");
}

TEST(Verify, CatchesOperandsBetweenIrregularBlocks) {
  for (const char* name : {"linear", "pairwise"}) {
    auto all = schedules(Kind::alltoallv, name, 5);
    Operand& operand = nth(all[4], StepKind::recv).first;
    operand.at.offset += operand.count * 4;  // the gap after the block, and what follows
    expect_failure(all, "outside the receive buffer");
    all = schedules(Kind::alltoallw, name, 5);
    nth(all[4], StepKind::recv).first.at.offset += 2;
    expect_failure(all, "between two elements");
  }
}

TEST(Verify, CatchesABlockWrittenAlthoughItHasNoPeer) {
  auto all = schedules(Kind::neighbor_alltoall, "linear", 4);
  ASSERT_EQ(all[0].shape.sources[0], -1);
  add_message(all, 1, 0, {{Buffer::send, 12 * 4}, 12, Unit::send},
              {{Buffer::recv, 0}, 12, Unit::recv});
  expect_failure(all, "outside the receive buffer");
}

TEST(Verify, BlocksToBeSentMayOverlap) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < 3; ++rank) {
    Shape shape;
    shape.kind = Kind::alltoallv;
    shape.rank = rank;
    shape.size = 3;
    for (int peer = 0; peer < 3; ++peer) {
      shape.send_blocks.push_back({10 + rank, 5 * (2 - peer), Unit::send});
      shape.recv_blocks.push_back({10 + peer, 100 * peer, Unit::recv});
    }
    all.push_back(build(*find_algorithm(Kind::alltoallv, "linear"), shape));
  }
  auto verified = verify(all);
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST(Verify, CatchesADeadlock) {
  auto all = schedules(Kind::allgather, "recursive-doubling", 2);
  // Each rank receives before it sends, in a round of its own.
  for (Schedule& schedule : all) schedule.round_ends.insert(schedule.round_ends.begin(), 1u);
  expect_failure(all, "deadlock");
}

TEST(Verify, CatchesRoundsThatDoNotCoverTheSteps) {
  auto all = schedules(Kind::scan, "chain", 3);
  all[1].round_ends.back() -= 1;
  EXPECT_FALSE(verify(all));
  all = schedules(Kind::scan, "chain", 3);
  all[1].round_ends.push_back(all[1].round_ends.back());
  expect_failure(all, "an empty round");
}

TEST(Verify, CatchesSchedulesOfDifferentCalls) {
  auto all = schedules(Kind::allgather, "ring", 2);
  all[1] = schedules(Kind::allgather, "bruck", 2)[1];
  expect_failure(all, "not those of one call");
  all = schedules(Kind::allgather, "ring", 2);
  std::swap(all[0], all[1]);
  expect_failure(all, "not those of one call");
  expect_failure({}, "no schedules");
}

TEST(Verify, AWholeCollectiveStandsAlone) {
  auto all = schedules(Kind::bcast, "binomial", 2);
  all[0].steps[0].kind = StepKind::library_blocking;
  EXPECT_FALSE(verify(all));  // rank 1 receives a message that nobody sends
  all = schedules(Kind::allreduce, "ring", 2);
  all[0].steps[1].kind = StepKind::library_blocking;
  expect_failure(all, "has company");
}

TEST(Verify, ElementsThatInterleaveDoNotOverlap) {
  // Describes two columns of a matrix: element i is column i, and column 1 begins inside column 0.
  const Layout column{
      .count = 1, .size = 16, .extent = 4, .true_lb = 0, .true_extent = 52, .plain = false};
  std::vector<Schedule> all;
  for (int rank = 0; rank < 2; ++rank) {
    Shape shape;
    shape.kind = Kind::allgather;
    shape.rank = rank;
    shape.size = 2;
    shape.send = shape.recv = column;
    all.push_back(build(*find_algorithm(Kind::allgather, "ring"), shape));
  }
  auto verified = verify(all);
  EXPECT_TRUE(verified) << verified.error().message;
}

}  // namespace
}  // namespace weft::test
