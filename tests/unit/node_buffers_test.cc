// Uses of node buffers: an operation begins once all ranks have ended the previous one in the same
// buffer, in whatever order they end. Ranks publish their ends in few slots.
#include "shm/node_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace weft::test {
namespace {

constexpr std::int64_t kBytes = 1024;

// The ranks use node buffers in the same order. Each rank ends its uses at any time.
class Ranks {
 public:
  explicit Ranks(int ranks)
      : memory_(static_cast<std::size_t>(NodeBuffers::bytes(ranks, kBytes))), all_(ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      node_buffers_.emplace_back(memory_.data(), rank, ranks, kBytes);
  }

  std::size_t count() const { return all_.size(); }
  const std::vector<std::byte>& memory() const { return memory_; }
  // The rank's uses that have not ended.
  std::set<std::size_t>& open(std::size_t rank) { return all_[rank].open; }
  NodeBufferUse& turn(std::size_t rank, std::size_t number) { return all_[rank].turns[number]; }
  bool may_take(std::size_t rank) const {
    const Rank& one = all_[rank];
    return one.turns.empty() || !one.waits_for_last;
  }

  void take(std::size_t rank, Ends ends, bool is_long) {
    Schedule schedule;
    schedule.is_long = is_long;
    Rank& one = all_[rank];
    one.open.insert(one.turns.size());
    one.turns.push_back(node_buffers_[rank].next(ends, schedule));
    one.waits_for_last = ends == Ends::in_order;
  }
  void end(std::size_t rank, std::size_t number) {
    Rank& one = all_[rank];
    one.turns[number].end(false);
    one.open.erase(number);
    if (number + 1 == one.turns.size()) one.waits_for_last = false;
  }
  std::size_t taken(std::size_t rank) const { return all_[rank].turns.size(); }

  // Returns whether all ranks have ended the last earlier use of the same node buffer.
  bool buffer_is_free(std::size_t rank, std::size_t number) {
    for (std::size_t before = number; before-- > 0;) {
      if (turn(rank, before).memory() != turn(rank, number).memory()) continue;
      return std::all_of(all_.begin(), all_.end(), [&](const Rank& one) {
        return before < one.turns.size() && !one.open.contains(before);
      });
    }
    return true;
  }

 private:
  struct Rank {
    std::vector<NodeBufferUse> turns;
    std::set<std::size_t> open;
    bool waits_for_last = false;
  };
  std::vector<std::byte> memory_;
  std::deque<NodeBuffers> node_buffers_;
  std::vector<Rank> all_;
};

TEST(NodeBuffers, ABufferIsFreeOnceAllHaveEndedWhatWasThere) {
  constexpr std::size_t kTurns = 200;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t end) { return random() % end; };
    Ranks ranks(1 + static_cast<int>(seed % 3));
    // The seed chooses how many uses end at any time, from few to all.
    std::vector<std::pair<Ends, bool>> turns;
    for (std::size_t i = 0; i < kTurns; ++i)
      turns.emplace_back(below(4) < seed % 5 ? Ends::any_time : Ends::in_order, below(3) == 0);
    std::size_t done = 0;
    for (int step = 0; step < 100'000 && done < kTurns * ranks.count(); ++step) {
      const std::size_t rank = below(ranks.count());
      auto& open = ranks.open(rank);
      for (const std::size_t number : open)
        ASSERT_EQ(ranks.turn(rank, number).may_begin(), ranks.buffer_is_free(rank, number));
      const std::size_t next = ranks.taken(rank);
      if (next < kTurns && ranks.may_take(rank) && below(2) == 0) {
        ranks.take(rank, turns[next].first, turns[next].second);
      } else if (!open.empty()) {
        const std::size_t number = *std::next(open.begin(), static_cast<long>(below(open.size())));
        if (!ranks.turn(rank, number).may_begin()) continue;
        ranks.end(rank, number);
        ++done;
      }
    }
    ASSERT_EQ(done, kTurns * ranks.count()) << "seed " << seed;
  }
}

// Returns the slots of the memory's first page that are not zero.
std::set<std::size_t> slots_written(const std::vector<std::byte>& memory) {
  std::set<std::size_t> slots;
  for (std::size_t at = 0; at < static_cast<std::size_t>(kPageBytes); ++at)
    if (memory[at] != std::byte{0}) slots.insert(at / kSlotBytes);
  return slots;
}

TEST(NodeBuffers, WhatEndsBeforeTheNextBeginsIsToldInOneSlotOfEachRank) {
  Ranks ranks(2);
  for (std::size_t number = 0; number < 20; ++number) {
    for (const std::size_t rank : {0u, 1u}) {
      ranks.take(rank, Ends::any_time, false);
      EXPECT_TRUE(ranks.turn(rank, number).may_begin());
      ranks.end(rank, number);
    }
  }
  EXPECT_EQ(slots_written(ranks.memory()), (std::set<std::size_t>{0, 1}));
}

TEST(NodeBuffers, AfterSomeThatOverlappedItIsSoAgain) {
  Ranks ranks(1);
  ranks.take(0, Ends::any_time, false);
  ranks.take(0, Ends::any_time, false);
  ranks.end(0, 1);
  EXPECT_EQ(slots_written(ranks.memory()).size(), 1u);  // the slot of the node buffer
  ranks.end(0, 0);
  EXPECT_EQ(slots_written(ranks.memory()).size(), 2u);
  for (std::size_t number = 2; number < 20; ++number) {
    ranks.take(0, Ends::any_time, false);
    EXPECT_TRUE(ranks.turn(0, number).may_begin());
    ranks.end(0, number);
  }
  EXPECT_EQ(slots_written(ranks.memory()).size(), 2u);
}

}  // namespace
}  // namespace weft::test
