// AcrossNodes: an allreduce of one part of the vector between the leaders of nodes, one on each,
// while the caller does something else in its first round.
// Recursive doubling keeps the order of the nodes, and is for two of them, for short parts, and for
// operators that do not commute. Otherwise recursive halving, then doubling: of a part of n bytes,
// k leaders together send 2 (k - 1) n, the least there is, in 2 log(k) rounds.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; Rabenseifner, ICCS 2004
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
  // leaders: by node. most: elements of the longest part.
  AcrossNodes(Builder& b, std::vector<int> leaders, int node, std::int64_t most);

  // Where the own operand of a part has to be; `result` is where its sum is to be.
  Location operand(std::int64_t part, Location result) const;
  // The sum is there after the round that is open in the end. Two parts may be in hand: `meanwhile`
  // may write the next one's operand.
  void reduce(std::int64_t part, Location result, std::int64_t count,
              const std::function<void()>& meanwhile);

 private:
  int size() const { return static_cast<int>(leaders_.size()); }
  int leader(int node) const { return leaders_[static_cast<std::size_t>(node)]; }
  // The node with which this one exchanges at a distance, a power of two.
  int partner(int distance) const { return fold_.rank_at(fold_.position(node_) ^ distance); }
  Location scratch(std::int64_t part) const { return scratch_[static_cast<std::size_t>(part % 2)]; }

  void leave_to_the_other(std::int64_t part, Location result, std::int64_t count,
                          const std::function<void()>& meanwhile);
  void by_doubling(std::int64_t part, Location result, std::int64_t count,
                   const std::function<void()>& meanwhile);
  void by_halving(std::int64_t part, Location result, std::int64_t count,
                  const std::function<void()>& meanwhile);

  Builder& b_;
  const std::vector<int> leaders_;
  const int node_;
  const Fold fold_;
  const bool halves_;
  std::array<Location, 2> scratch_;
};

}  // namespace weft
