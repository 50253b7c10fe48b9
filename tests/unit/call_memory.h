// The memory of a collective call of the tests on all ranks: buffers with guard zones, input that
// differs between ranks and blocks, and the oracle's expected contents, including holes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "call_layout.h"

namespace weft::test {

// A buffer of one rank. Every byte that is not payload must stay unchanged.
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
  // Returns the ranks' memory for the simulator.
  std::vector<SimRank> ranks();
  const SimOperator& op() const { return op_; }

  // Returns the first difference from the expected contents; "" if there is none.
  std::string difference() const;

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
