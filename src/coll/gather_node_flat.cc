// Gather in the node's memory: every rank copies its block there part after part, the root copies
// all of them out. With blocks of n bytes the root copies p n, the others n. With short blocks
// nobody waits but the root. Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI
// 2008
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

void give(Builder& b, NodeParts& part) {
  const Shape& s = b.shape();
  PackedBlock own(b, outgoing(s, 0), part.is_cut());
  own.pack();
  for (; !part.done(); part.next()) {
    part.wait_until_read(s.root);
    own.copy_to(part.of(s.rank), part.begin(), part.count());
    part.signal();
  }
}

void take_all(Builder& b, NodeParts& part) {
  const Shape& s = b.shape();
  std::vector<PackedBlock> blocks;  // by distance
  for (int i = 1; i < s.size; ++i)
    blocks.emplace_back(b, incoming(s, ring_at(s.rank, i, s.size)), part.is_cut());
  for (; !part.done(); part.next()) {
    part.signal_if_reused();
    for (int i = 1; i < s.size; ++i) {
      const int rank = ring_at(s.rank, i, s.size);
      part.wait(rank);
      blocks[static_cast<std::size_t>(i - 1)].copy_from(part.of(rank), part.begin(), part.count());
    }
  }
  for (PackedBlock& block : blocks) block.unpack();
  copy_own_block(b);
}

}  // namespace

void gather_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = *agreed_bytes(s) / s.size;
  if (s.size == 1) return copy_own_block(b);
  if (bytes == 0) return;
  NodeParts part(b, bytes);
  if (s.rank == s.root)
    take_all(b, part);
  else
    give(b, part);
}

}  // namespace weft
