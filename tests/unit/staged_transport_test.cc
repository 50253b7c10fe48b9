// StagedTransport: every algorithm works on copies of its buffers, which hold rubbish until their
// pieces arrive, late and one by one; the buffers themselves must equal the oracle's afterwards.
// Steps start as soon as their own pieces are there, and pieces leave before the schedule is over.
#include "transport/staged_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "call_memory.h"
#include "sim/experiment.h"
#include "simulated_call.h"
#include "transport/sim/leaders.h"
#include "transport/sim/sim_node.h"
#include "transport/sim/sim_transport.h"

namespace weft::test {
namespace {

// A buffer of one rank and its copy. Now and then, when it is asked, a piece arrives.
class LateMover final : public PieceMover {
 public:
  // origin: the beginning of the buffer. runs: what the collective uses of it.
  LateMover(std::byte* origin, const Shape& shape, Buffer buffer, const std::vector<Operand>& runs,
            std::int64_t piece_bytes, std::mt19937& random)
      : origin_(origin), random_(random) {
    for (const Operand& run : runs) used_.push_back(touched_bytes(shape, run));
    Range all = used_[0];
    for (const Range& one : used_)
      all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
    copy_.assign(static_cast<std::size_t>(all.end - all.begin), std::byte{0xA5});
    const bool is_root = shape.kind == Kind::bcast && shape.rank == shape.root;
    const bool is_plain = shape.recv.plain && std::all_of(shape.types.begin(), shape.types.end(),
                                                          [](auto& one) { return one.plain; });
    const bool is_input = buffer == Buffer::send || shape.in_place || is_root;
    described_ = {
        buffer, this, all, piece_bytes, is_input || !is_plain, !is_root && buffer == Buffer::recv};
  }

  const StagedBuffer& described() const { return described_; }
  std::byte* copys_origin() { return copy_.data() - described_.bytes.begin; }

  void bring_in(int piece) override { coming_.push_back(piece); }
  void take_out(int piece) override { leaving_.push_back(piece); }
  int brought_in() override { return arrived(coming_, &came_, origin_, copys_origin()); }
  int taken_out() override { return arrived(leaving_, &left_, copys_origin(), origin_); }
  void wait() override {
    while (!coming_.empty()) brought_in();
    while (!leaving_.empty()) taken_out();
  }
  int left() const { return left_; }

 private:
  int arrived(std::deque<int>& under_way, int* count, const std::byte* from, std::byte* to) {
    if (under_way.empty() || random_() % 3 == 0) return *count;
    const std::int64_t begin = described_.bytes.begin + under_way.front() * described_.piece_bytes;
    for (const Range& one : used_) {
      const std::int64_t first = std::max(begin, one.begin);
      const std::int64_t end = std::min(begin + described_.piece_bytes, one.end);
      if (first < end) std::memcpy(to + first, from + first, static_cast<std::size_t>(end - first));
    }
    under_way.pop_front();
    return ++*count;
  }

  std::byte* const origin_;
  std::mt19937& random_;
  std::vector<Range> used_;
  std::vector<std::byte> copy_;
  StagedBuffer described_{};
  std::deque<int> coming_, leaving_;
  int came_ = 0, left_ = 0;
};

// One rank of a collective on copies.
class StagedRank {
 public:
  StagedRank(const Schedule& schedule, CallMemory& memory, std::int64_t piece_bytes,
             std::mt19937& random)
      : schedule_(schedule) {
    const Shape& shape = schedule.shape;
    for (const Buffer buffer : {Buffer::send, Buffer::recv}) {
      const auto runs = buffer_runs(shape, buffer);
      std::byte* const origin =
          buffer == Buffer::send ? memory.send(shape.rank) : memory.recv(shape.rank);
      if (runs.empty()) continue;
      movers_.push_back(
          std::make_unique<LateMover>(origin, shape, buffer, runs, piece_bytes, random));
    }
  }

  // Replaces the buffers by the copies.
  void stage(SimRank& rank) {
    for (const auto& mover : movers_) {
      if (mover->described().buffer == Buffer::send)
        rank.send = mover->copys_origin();
      else
        rank.recv = mover->copys_origin();
    }
  }

  void begin(SimNetwork& network, SimLeaders& leaders, const SimModel& model,
             std::span<const SimRank> ranks, const SimOperator& op, const NodeBufferUse& turn) {
    turn_ = turn;
    inner_ =
        std::make_unique<SimTransport>(network, leaders, model, 0, schedule_, ranks, op, turn_);
    std::vector<StagedBuffer> described;
    for (const auto& mover : movers_) described.push_back(mover->described());
    staged_ = std::make_unique<StagedTransport>(*inner_, nullptr, schedule_, described);
    execution_ = std::make_unique<Execution>(schedule_, staged_.get(), nullptr, &turn_);
    staged_->begin();
  }

  // Returns true once the collective is over.
  Result<bool> advance() {
    if (is_over_) return true;
    auto advanced = execution_->advance();
    if (!advanced || !*advanced) return advanced;
    staged_->end(true);
    is_over_ = true;
    return true;
  }

 private:
  const Schedule& schedule_;
  std::vector<std::unique_ptr<LateMover>> movers_;
  NodeBufferUse turn_;
  std::unique_ptr<SimTransport> inner_;
  std::unique_ptr<StagedTransport> staged_;
  std::unique_ptr<Execution> execution_;
  bool is_over_ = false;
};

// Returns what is wrong; "" if the collective equals the oracle's.
std::string difference(const Call& call, std::int64_t piece_bytes, std::mt19937& random) {
  constexpr int kMostVisits = 100'000;
  const std::vector<Schedule> schedules = build_all(call);
  CallMemory memory(call);
  std::vector<SimRank> ranks = memory.ranks();
  const SimModel model;
  SimNetwork network(model, call.size);
  SimLeaders leaders(model, memory.op());
  std::map<int, SimNode> nodes;
  std::deque<StagedRank> all;
  for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
    all.emplace_back(schedules[rank], memory, piece_bytes, random);
    all.back().stage(ranks[rank]);
  }
  for (std::size_t rank = 0; rank < schedules.size(); ++rank)
    all[rank].begin(network, leaders, model, ranks, memory.op(),
                    nodes[node_of(schedules[rank].shape)].turn(schedules[rank]));
  for (int visit = 0; visit < kMostVisits; ++visit) {
    bool are_over = true;
    for (StagedRank& one : all) {
      const auto advanced = one.advance();
      if (!advanced) return advanced.error().message;
      are_over = are_over && *advanced;
    }
    if (are_over) return memory.difference();
  }
  return "the ranks wait for ever";
}

class StagedAlgorithm : public testing::TestWithParam<const Algorithm*> {
 protected:
  // Checks the call with every operator and size of pieces, in place and not.
  void check_variants(Call call) {
    const Algorithm& algorithm = *call.algorithm;
    for (const Op op : {Op::sum, Op::affine})
      for (const bool in_place : {false, true}) {
        call.op = op;
        call.in_place = in_place;
        if (op != Op::sum && !reduces(algorithm.kind)) continue;
        if (in_place && !has_in_place(algorithm.kind)) continue;
        if (!applies(algorithm, shape_of(call, 0))) continue;
        for (const std::int64_t piece_bytes : {200, 3000}) {
          ++checked_;
          ASSERT_EQ(difference(call, piece_bytes, random_), "")
              << call.text() << ", pieces of " << piece_bytes;
        }
      }
  }

  std::mt19937 random_{7};
  int checked_ = 0;
};

TEST_P(StagedAlgorithm, EqualsTheOracleHoweverPiecesArrive) {
  for (const int size : {1, 2, 3, 5, 8})
    for (const TestType& type : test_types())
      for (const std::int64_t count : {1, 40, 700}) {
        check_variants({.algorithm = GetParam(),
                        .size = size,
                        .root = size / 2,
                        .count = count,
                        .type = &type});
        if (HasFatalFailure()) return;
      }
  EXPECT_GT(checked_, 0);
}

std::vector<const Algorithm*> all_but_direct() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms())
    if (!is_direct(algorithm)) all.push_back(&algorithm);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, StagedAlgorithm, testing::ValuesIn(all_but_direct()),
                         [](const auto& info) {
                           std::string name =
                               std::string(kind_name(info.param->kind)) + "_" + info.param->name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A buffer of which as many pieces have arrived as the test says.
class GivenMover final : public PieceMover {
 public:
  void bring_in(int piece) override { order.push_back(piece); }
  void take_out(int piece) override { out.push_back(piece); }
  int brought_in() override { return arrived; }
  int taken_out() override { return static_cast<int>(out.size()); }
  void wait() override {}

  int arrived = 0;
  std::vector<int> order, out;
};

// A transport whose messages arrive at once.
class QuickTransport final : public Transport {
 public:
  Result<bool> start(const Step& step) override {
    sends += step.kind == StepKind::send ? 1 : 0;
    return true;
  }
  Result<bool> test() override { return true; }

  int sends = 0;
};

// StagedRing: one rank of a ring of kRanks ranks, whose buffers move in pieces of a block.
struct StagedRing {
  static constexpr int kRanks = 8;
  static constexpr std::int64_t kBlockBytes = 4096;
  static constexpr Range kAll{0, kRanks* kBlockBytes};
  static Shape shape() {
    return sim::shape_of(Kind::allreduce, kRanks, kRanks, {}, kAll.end, 0, false);
  }
  explicit StagedRing(Schedule given) : schedule(std::move(given)) {}

  const Schedule schedule;
  GivenMover from, to;
  QuickTransport messages;
  StagedTransport staged{messages,
                         nullptr,
                         schedule,
                         {{Buffer::send, &from, kAll, kBlockBytes, true, false},
                          {Buffer::recv, &to, kAll, kBlockBytes, false, true}}};
  Execution execution{schedule, &staged};
};

// In a ring each rank sends another block in each round. So a message leaves for each block that
// has arrived, and the blocks of the result leave in the last rounds, one by one.
TEST(StagedTransport, LetsARingBeginWithItsFirstBlock) {
  Shape shape = StagedRing::shape();
  shape.rank = 3;
  StagedRing ring(build(*find_algorithm(Kind::allreduce, "ring"), shape));
  auto& [schedule, from, to, messages, staged, execution] = ring;
  staged.begin();
  EXPECT_EQ(from.order.size(), static_cast<std::size_t>(StagedRing::kRanks));
  EXPECT_TRUE(to.order.empty());
  for (from.arrived = 0; from.arrived < StagedRing::kRanks; ++from.arrived) {
    const auto advanced = execution.advance();
    ASSERT_TRUE(advanced && !*advanced);
    EXPECT_EQ(messages.sends, from.arrived);
    EXPECT_TRUE(to.out.empty());
  }
  const auto advanced = execution.advance();
  ASSERT_TRUE(advanced && *advanced);
  EXPECT_EQ(messages.sends, 2 * (StagedRing::kRanks - 1));
  std::vector<int> pieces = to.out;
  std::sort(pieces.begin(), pieces.end());
  for (int piece = 0; piece < StagedRing::kRanks; ++piece)
    EXPECT_EQ(pieces[static_cast<std::size_t>(piece)], piece);
  EXPECT_NE(to.out, pieces);  // the own block first, then those of the ranks before it
}

// A later batch of a schedule may use any piece, so that none leaves before the end.
TEST(StagedTransport, KeepsTheOutputOfSchedulesInBatches) {
  Shape shape = StagedRing::shape();
  StagedRing ring(build_in_batches(*find_algorithm(Kind::allreduce, "ring"), shape, 2));
  auto& [schedule, from, to, messages, staged, execution] = ring;
  ASSERT_NE(schedule.next_batch, nullptr);
  from.arrived = StagedRing::kRanks;
  staged.begin();
  auto advanced = execution.advance();
  ASSERT_TRUE(advanced && *advanced);
  for (Schedule batch = schedule.next_batch(schedule);;
       batch = batch.next_batch(std::move(batch))) {
    execution.continue_with(batch);
    advanced = execution.advance();
    ASSERT_TRUE(advanced && *advanced);
    if (!batch.next_batch) break;
  }
  EXPECT_EQ(messages.sends, 2 * (StagedRing::kRanks - 1));
  EXPECT_TRUE(to.out.empty());
  staged.end(true);
  EXPECT_EQ(to.out.size(), static_cast<std::size_t>(StagedRing::kRanks));
}

}  // namespace
}  // namespace weft::test
