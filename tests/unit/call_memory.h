// The memory of one collective call of the tests on all ranks: buffers with guard zones around
// them, input that tells ranks and blocks apart, and what the oracle expects, holes included.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "call_layout.h"

namespace weft::test {

// One buffer of one rank; every byte that is not payload must stay as it was.
class GuardedBuffer {
 public:
  GuardedBuffer(const std::vector<BlockInMemory>& some, const std::vector<BlockInMemory>& more);

  std::byte* origin();
  void put(const BlockInMemory& block, const Payload& payload);
  bool operator==(const GuardedBuffer& other) const;

 private:
  std::vector<std::byte> bytes_;
};

class CallMemory {
 public:
  explicit CallMemory(const Call& call);

  std::byte* send(int rank) { return at(rank).send.origin(); }
  std::byte* recv(int rank) { return at(rank).recv.origin(); }
  // For the simulator.
  std::vector<SimRank> ranks();
  const SimOperator& op() const { return op_; }

  std::string difference() const;  // from what is expected; empty: none

 private:
  struct RankMemory {
    GuardedBuffer send, recv, expected_send, expected_recv;
  };
  static RankMemory make(const RankLayout& layout, const std::vector<Payload>& input,
                         const std::vector<Output>& output);

  RankMemory& at(int rank) { return memory_[static_cast<std::size_t>(rank)]; }

  Call call_;
  SimOperator op_;
  std::vector<RankLayout> layouts_;
  std::vector<RankMemory> memory_;
};

}  // namespace weft::test
