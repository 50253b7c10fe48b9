// Groups the blocks of a neighborhood collective by peer. Algorithms must keep the order of the
// blocks between two ranks, since only this order tells which send belongs to which receive.
#pragma once

#include <span>
#include <vector>

#include "schedule/builder.h"

namespace weft {

// The blocks that are sent to one rank, or received from it, in their order.
struct Edges {
  int peer = 0;
  std::span<const int> blocks;
};

// Sorts blocks by the ranks in `peers` (destinations or sources), starting with the rank above this
// one, so that not all ranks start with the same peer. It leaves out blocks without a peer and
// those of this rank itself.
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

// Posts a receive for each block, in the order of the blocks.
void receive_from_neighbors(Builder& b);
void copy_to_self(Builder& b);  // copies the blocks that this rank sends to itself

}  // namespace weft
