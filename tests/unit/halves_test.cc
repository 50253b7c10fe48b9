// Node buffers, and halves of node memory that swap: two ranks write where they have read last.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "simulated_call.h"
#include "transport/operands.h"

namespace weft::test {
namespace {

constexpr int kRanks = 2;

// Where a rank writes what it shows, and where it reads what the other rank shows, chunk by chunk.
struct Shown {
  std::vector<const std::byte*> written, read;
};

class TwoRanks {
 public:
  TwoRanks(Kind kind, std::int64_t count) {
    Call call{.size = kRanks, .count = count, .type = &test_types()[0]};
    call.algorithm = find_algorithm(kind, "node-flat");
    schedules_ = build_all(call);
    const std::int64_t bytes = schedules_[0].node_bytes;
    memory_.resize(static_cast<std::size_t>(NodeBuffers::bytes(kRanks, bytes)));
    for (int rank = 0; rank < kRanks; ++rank)
      node_buffers_.push_back(std::make_unique<NodeBuffers>(memory_.data(), rank, kRanks, bytes));
  }

  // Returns the places for the rank's next use of the memory.
  Shown shown(int rank) {
    const auto i = static_cast<std::size_t>(rank);
    Operands operands;
    operands.use(node_buffers_[i]->next(Ends::in_order, schedules_[i]), schedules_[i]);
    Shown found;
    for (const Step& step : schedules_[i].steps) {
      if (!is_local(step.kind)) continue;
      const auto add = [&](const Location& at, std::vector<const std::byte*>* to) {
        if (is_in_node(at.buffer))
          to->push_back(operands.base[static_cast<std::size_t>(at.buffer)] + at.offset);
      };
      add(result_of(step).at, &found.written);
      add(step.first.at, &found.read);
      if (step.kind == StepKind::reduce) add(step.second.at, &found.read);
    }
    return found;
  }

 private:
  std::vector<Schedule> schedules_;
  std::vector<std::byte> memory_;
  std::vector<std::unique_ptr<NodeBuffers>> node_buffers_;
};

constexpr int kNodeBuffers = 4;

TEST(Halves, EachRankWritesWhereItHasReadLast) {
  for (const Kind kind : {Kind::allreduce, Kind::allgather}) {
    TwoRanks ranks(kind, 1000);
    std::vector<Shown> before[kRanks];
    for (int turn = 0; turn < 3 * kNodeBuffers; ++turn) {
      Shown of[kRanks] = {ranks.shown(0), ranks.shown(1)};
      EXPECT_EQ(of[0].written, of[1].read);
      EXPECT_EQ(of[1].written, of[0].read);
      for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(of[rank].written.size(), 1u);
        if (turn >= kNodeBuffers) {
          const Shown& last = before[rank][static_cast<std::size_t>(turn - kNodeBuffers)];
          EXPECT_EQ(of[rank].written, last.read);
        }
        before[rank].push_back(of[rank]);
      }
    }
  }
}

TEST(Halves, SoItIsFromChunkToChunk) {
  TwoRanks ranks(Kind::allreduce, 100'000);
  const Shown of[kRanks] = {ranks.shown(0), ranks.shown(1)};
  EXPECT_EQ(of[0].written, of[1].read);
  ASSERT_GT(of[0].written.size(), 4u);
  for (std::size_t chunk = 2; chunk < of[0].written.size(); ++chunk)
    EXPECT_EQ(of[0].written[chunk], of[0].read[chunk - 2]);
}

TEST(NodeBuffers, LongOperationsKeepToTwo) {
  constexpr std::int64_t kBytes = 1024;
  std::vector<std::byte> memory(static_cast<std::size_t>(NodeBuffers::bytes(1, kBytes)));
  NodeBuffers node_buffers(memory.data(), 0, 1, kBytes);
  const auto used = [&](bool is_long) {
    Schedule schedule;
    schedule.is_long = is_long;
    std::set<std::byte*> all;
    for (int turn = 0; turn < 2 * kNodeBuffers; ++turn) {
      const NodeBufferUse next =
          node_buffers.next(turn % 2 == 0 ? Ends::in_order : Ends::any_time, schedule);
      EXPECT_TRUE(next.may_begin());
      next.end(true);
      all.insert(next.memory());
    }
    return all;
  };
  const std::set<std::byte*> all = used(false), of_long = used(true);
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(of_long.size(), 2u);
  EXPECT_TRUE(std::includes(all.begin(), all.end(), of_long.begin(), of_long.end()));
}

}  // namespace
}  // namespace weft::test
