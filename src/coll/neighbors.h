// Groups the blocks of a neighborhood collective by peer. Algorithms must keep the order of blocks
// between two ranks, since only the order tells which of them match.
#pragma once

#include <span>
#include <vector>

#include "schedule/builder.h"

namespace weft {

// The blocks sent to or received from one rank, in their order.
struct Edges {
  int peer = 0;
  std::span<const int> blocks;
};

// Sorts the blocks of `peers` (destinations or sources) by peer, starting with the peer above this
// rank, so that not all ranks start with the same one. Blocks without a peer and those of this rank
// itself are left out.
class EdgesByPeer {
 public:
  EdgesByPeer(const Shape& shape, const std::vector<int>& peers);
  EdgesByPeer(const EdgesByPeer&) = delete;
  EdgesByPeer& operator=(const EdgesByPeer&) = delete;

  const std::vector<Edges>& all() const { return edges_; }

 private:
  std::vector<int> blocks_;
  std::vector<Edges> edges_;
};

void receive_from_neighbors(Builder& b);  // posts one receive per block, in their order
void copy_to_self(Builder& b);            // copies the blocks that this rank sends to itself

}  // namespace weft
