// Scatter in the node's memory: the root copies all blocks there part after part, each other rank
// copies its own out. With blocks of n bytes the root copies p n, the others n.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

void give_all(Builder& b, NodeParts& part) {
  const Shape& s = b.shape();
  std::vector<PackedBlock> blocks;  // by distance
  for (int i = 1; i < s.size; ++i)
    blocks.emplace_back(b, outgoing(s, ring_at(s.rank, i, s.size)), part.is_cut());
  for (PackedBlock& block : blocks) block.pack();
  for (; !part.done(); part.next()) {
    for (int i = 1; i < s.size; ++i) {
      const int rank = ring_at(s.rank, i, s.size);
      part.wait_until_read(rank);
      blocks[static_cast<std::size_t>(i - 1)].copy_to(part.of(rank), part.begin(), part.count());
    }
    part.signal();
  }
  copy_own_block(b);
}

void take(Builder& b, NodeParts& part) {
  const Shape& s = b.shape();
  PackedBlock own(b, incoming(s, s.rank), part.is_cut());
  for (; !part.done(); part.next()) {
    part.signal_if_reused();
    part.wait(s.root);
    own.copy_from(part.of(s.rank), part.begin(), part.count());
  }
  own.unpack();
}

}  // namespace

void scatter_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = *agreed_bytes(s) / s.size;
  if (s.size == 1) return copy_own_block(b);
  if (bytes == 0) return;
  NodeParts part(b, bytes);
  if (s.rank == s.root)
    give_all(b, part);
  else
    take(b, part);
}

}  // namespace weft
