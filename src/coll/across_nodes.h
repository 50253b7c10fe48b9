// AcrossNodes: an allreduce of one part of the vector between the leaders of nodes, one on each,
// while the caller does something else in its first round.
// Two nodes, short parts, and operators that do not commute: recursive doubling, which keeps the
// order of the nodes. Else a ring, in which a leader sends 2 (k - 1) / k of the part with k nodes.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; Patarasuk, Yuan, JPDC 69(2), 2009
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
  struct Exchange {
    int peer;
    bool sends;
    bool peer_is_lower;
  };

  std::vector<Exchange> exchanges() const;
  int size() const { return static_cast<int>(leaders_.size()); }
  int leader(int node) const { return leaders_[static_cast<std::size_t>(node)]; }
  Location scratch(std::int64_t part) const { return scratch_[static_cast<std::size_t>(part % 2)]; }

  void by_doubling(std::int64_t part, Location result, std::int64_t count,
                   const std::function<void()>& meanwhile);
  void around_the_ring(std::int64_t part, Location result, std::int64_t count,
                       const std::function<void()>& meanwhile);

  Builder& b_;
  const std::vector<int> leaders_;
  const int node_;
  const Fold fold_;
  const bool ring_;
  const std::vector<Exchange> exchanges_;
  std::array<Location, 2> scratch_;
};

}  // namespace weft
