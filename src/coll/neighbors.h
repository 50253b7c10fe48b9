// The blocks of a neighborhood collective, by the rank at their other end.
// Why the order of blocks between two ranks is kept everywhere: it alone says which belong
// together.
#pragma once

#include <span>
#include <vector>

#include "schedule/builder.h"

namespace weft {

// Blocks that go to one rank, or come from it, in their order.
struct Edges {
  int peer = 0;
  std::span<const int> blocks;
};

// Sorts the blocks of `destinations` or `sources` by peer, beginning with the peer above this rank,
// so that not all ranks begin with the same one. Blocks without a peer and those of this rank
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

void receive_from_neighbors(Builder& b);  // one message per block, in their order
void copy_to_self(Builder& b);            // blocks of which both ends are this rank

}  // namespace weft
