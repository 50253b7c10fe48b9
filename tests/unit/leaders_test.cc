// Collectives between leaders with many operations in flight. Each rank advances them in a random
// order, but calls MPI in the order in which the operations were started.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <random>

#include "call_memory.h"
#include "coll/algorithm_names.h"
#include "schedule/verify.h"
#include "select/selector.h"
#include "simulated_call.h"
#include "transport/sim/sim_transport.h"
#include "transport/turns.h"

namespace weft::test {
namespace {

using algorithm_names::kHierarchicalLibrary;

constexpr int kRanks = 6;

// An operation on one rank.
class InTurn final : public SimTransport {
 public:
  InTurn(Turns& turns, int* refusals, SimNetwork& network, SimLeaders& leaders,
         const SimModel& model, int operation, const Schedule& schedule,
         std::span<const SimRank> buffers, const SimOperator& op, const NodeBufferUse& turn)
      : SimTransport(network, leaders, model, operation, schedule, buffers, op, turn),
        turns_(turns),
        calls_left_(schedule.leader_calls),
        turn_(calls_left_ > 0 ? turns.take() : 0),
        refusals_(refusals) {}

  Result<bool> start(const Step& step) override {
    if (step.kind != StepKind::leaders) return SimTransport::start(step);
    if (!turns_.has_come(turn_)) {
      ++*refusals_;
      return false;
    }
    auto started = SimTransport::start(step);
    if (--calls_left_ == 0) turns_.end(turn_);
    return started;
  }

 private:
  Turns& turns_;
  std::uint32_t calls_left_;
  const std::uint32_t turn_;
  int* const refusals_;
};

// The memory of each node, and each rank's view of it.
class Memories {
 public:
  explicit Memories(const Nodes& nodes) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const int ranks = nodes.ranks_on(nodes.of(rank));
      const std::int64_t buffer_bytes = ranks * (kSlotBytes + kNodeBytesPerRank);
      std::vector<std::byte>& memory = memories_[nodes.of(rank)];
      memory.resize(static_cast<std::size_t>(NodeBuffers::bytes(ranks, buffer_bytes)));
      node_buffers_.emplace_back(memory.data(), nodes.local_rank(rank), ranks, buffer_bytes);
    }
  }
  NodeBufferUse turn(const Schedule& schedule) {
    NodeBuffers& node_buffers = node_buffers_[static_cast<std::size_t>(schedule.shape.rank)];
    return node_buffers.next(Ends::any_time, schedule);
  }

 private:
  std::map<int, std::vector<std::byte>> memories_;  // indexed by node
  std::deque<NodeBuffers> node_buffers_;            // indexed by rank
};

struct Running {
  Running(Turns& turns, Memories& memories, int* refusals, SimNetwork& network, SimLeaders& leaders,
          const SimModel& model, int operation, const Schedule& schedule,
          std::span<const SimRank> buffers, const SimOperator& op)
      : turn(memories.turn(schedule)),
        transport(turns, refusals, network, leaders, model, operation, schedule, buffers, op, turn),
        execution(schedule, &transport, nullptr, &turn) {}

  NodeBufferUse turn;
  InTurn transport;
  Execution execution;
};

// Returns short and long calls, with several leaders on a node and with one.
std::vector<Call> calls_in_flight() {
  std::vector<Call> calls;
  for (const std::int64_t count : {100'000, 1, 60'000, 5'000, 40'000, 1})
    for (const Kind kind : {Kind::allreduce, Kind::bcast, Kind::reduce, Kind::allgather})
      calls.push_back({.algorithm = kHierarchicalLibrary.of(kind),
                       .size = kRanks,
                       .root = has_root(kind) ? static_cast<int>(calls.size()) % kRanks : 0,
                       .count = kind == Kind::allgather ? count / kRanks + 1 : count,
                       .type = &test_types()[0],
                       .placing = Placing::pairs});
  return calls;
}

class Flight {
 public:
  explicit Flight(unsigned seed) : random_(seed) {
    for (const Call& call : calls_) {
      schedules_.push_back(build_all(call));
      memory_.emplace_back(call);
      buffers_.push_back(memory_.back().ranks());
    }
  }

  // All ranks start the operations in the same order and advance them in random orders.
  void run() {
    for (std::size_t call = 0; call < calls_.size(); ++call)
      for (int rank = 0; rank < kRanks; ++rank) start(call, rank);
    std::vector<Execution*> left;
    for (Running& one : running_) left.push_back(&one.execution);
    for (int visits = 0; !left.empty() && visits < kMostVisits; ++visits) {
      const std::size_t which = random_() % left.size();
      const auto advanced = left[which]->advance();
      ASSERT_TRUE(advanced) << advanced.error().message;
      if (*advanced) left.erase(left.begin() + static_cast<std::ptrdiff_t>(which));
    }
    EXPECT_TRUE(left.empty()) << left.size() << " are stuck";
  }

  void check() const {
    for (std::size_t call = 0; call < calls_.size(); ++call)
      EXPECT_EQ(memory_[call].difference(), "") << calls_[call].text();
  }
  int refusals() const { return refusals_; }

 private:
  static constexpr int kMostVisits = 1'000'000;

  void start(std::size_t call, int rank) {
    const Schedule& schedule = schedules_[call][static_cast<std::size_t>(rank)];
    running_.emplace_back(turns_[static_cast<std::size_t>(rank)], memories_, &refusals_, network_,
                          leaders_, model_, static_cast<int>(call), schedule, buffers_[call],
                          memory_[call].op());
  }

  std::mt19937 random_;
  const std::vector<Call> calls_ = calls_in_flight();
  std::deque<std::vector<Schedule>> schedules_;  // indexed by call
  std::deque<CallMemory> memory_;
  std::deque<std::vector<SimRank>> buffers_;
  Memories memories_{*shape_of(calls_[0], 0).nodes};
  const SimModel model_;
  const SimOperator sum_ = make_operator(Op::sum, {Scalar::i32});
  SimNetwork network_{model_, kRanks};
  SimLeaders leaders_{model_, sum_};
  std::array<Turns, kRanks> turns_;
  std::deque<Running> running_;
  int refusals_ = 0;
};

TEST(Leaders, CallInOneOrderHoweverOperationsAreBroughtForward) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    Flight flight(seed);
    flight.run();
    flight.check();
    EXPECT_GT(flight.refusals(), 0) << "no operation got there before its turn";
  }
}

TEST(Leaders, NobodyTakesThePlaceOfAnOperationThatFailed) {
  Turns turns;
  const std::uint32_t first = turns.take(), second = turns.take();
  EXPECT_TRUE(turns.has_come(first));
  EXPECT_FALSE(turns.has_come(second));
  turns.stop();
  EXPECT_TRUE(turns.stopped());
  EXPECT_FALSE(turns.has_come(second));
}

TEST(Leaders, AreSeenToCallTheSame) {
  Call call{.algorithm = kHierarchicalLibrary.of(Kind::allreduce),
            .size = 4,
            .count = 12,
            .type = &test_types()[0],
            .placing = Placing::pairs};
  const auto right = build_all(call);
  ASSERT_TRUE(verify(right));
  const auto failure = [&](auto change) {
    auto all = right;
    for (Step& step : all[2].steps)
      if (step.kind == StepKind::leaders) change(all[2], step);
    const auto verified = verify(all);
    return verified ? std::string() : verified.error().message;
  };
  const auto other_kind = [](Schedule&, Step& step) { step.collective = Kind::bcast; };
  EXPECT_NE(failure(other_kind).find("call different collectives"), std::string::npos);
  const auto other_size = [](Schedule&, Step& step) { step.first.count = step.second.count = 11; };
  EXPECT_NE(failure(other_size).find("call different collectives"), std::string::npos);
  const auto none = [](Schedule& schedule, Step&) { schedule.shape.has_leaders = false; };
  EXPECT_NE(failure(none), "");
}

TEST(Leaders, ThatAreTheOnlyRanksOfTheirNodesLeaveTheCallToTheLibrary) {
  Config config;
  config.algorithm[static_cast<std::size_t>(Kind::allreduce)] = kHierarchicalLibrary.text();
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.size = 4;
  shape.send.count = shape.recv.count = 1 << 20;
  const auto engine = [&] {
    return choose(config, Library::openmpi, Engine::thread, shape).engine;
  };
  EXPECT_EQ(engine(), Engine::native);
  shape.nodes = std::make_shared<const Nodes>(std::vector{0, 0, 1, 1});
  EXPECT_EQ(engine(), Engine::thread);
  shape.nodes = nullptr;
  shape.on_one_node = true;
  EXPECT_EQ(engine(), Engine::thread);
}

}  // namespace
}  // namespace weft::test
