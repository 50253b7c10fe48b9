// AcrossNodes: an allreduce of one chunk of the vector between leaders, one on each node. Two
// nodes, short chunks and non-commutative operators use recursive doubling, which keeps the order
// of the nodes. All others use recursive halving, then doubling: for a chunk of n bytes, k leaders
// together send 2 (k - 1) n bytes, the minimum, in 2 log(k) rounds. Thakur, Rabenseifner, Gropp,
// IJHPCA 19(1), 2005; Rabenseifner, ICCS 2004
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "patterns/doubling.h"
#include "schedule/builder.h"

namespace weft {

class AcrossNodes {
 public:
  // leaders: the rank of each node's leader, indexed by node. node: the node of this rank. most:
  // the number of elements in the longest chunk.
  AcrossNodes(Builder& b, std::vector<int> leaders, int node, std::int64_t most);

  // Returns where this leader must put its operand of a chunk so that the sum ends at `result`.
  Location operand(std::int64_t chunk, Location result) const;
  // Reduces one chunk between the leaders. The sum is at `result` when the round ends that is still
  // open on return. meanwhile() is called while the first round is open: it may add steps for other
  // work, such as writing the operand of the next chunk.
  void reduce(std::int64_t chunk, Location result, std::int64_t count,
              const std::function<void()>& meanwhile);

 private:
  int size() const { return static_cast<int>(leaders_.size()); }
  int leader(int node) const { return leaders_[static_cast<std::size_t>(node)]; }
  // Returns the node whose number among the acting nodes differs from this one's in the bit
  // `distance`.
  int partner(int distance) const { return fold_.rank_at(fold_.position(node_) ^ distance); }
  Location scratch(std::int64_t chunk) const {
    return scratch_[static_cast<std::size_t>(chunk % 2)];
  }

  void leave_to_the_other(std::int64_t chunk, Location result, std::int64_t count,
                          const std::function<void()>& meanwhile);
  void by_doubling(std::int64_t chunk, Location result, std::int64_t count,
                   const std::function<void()>& meanwhile);
  void by_halving(std::int64_t chunk, Location result, std::int64_t count,
                  const std::function<void()>& meanwhile);

  Builder& b_;
  const std::vector<int> leaders_;
  const int node_;
  const Fold fold_;
  const bool halves_;
  std::array<Location, 2> scratch_;
};

}  // namespace weft
