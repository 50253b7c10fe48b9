// Scatter in the node's shared memory: the root copies all blocks in, chunk by chunk, and each
// other rank copies its own out. With p ranks and blocks of n bytes, the root copies p n bytes, the
// others n.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

void give_all(Builder& b, NodeChunks& chunk) {
  const Shape& s = b.shape();
  // Blocks of the other ranks, beginning with the rank above the root.
  std::vector<PackedBlock> blocks;
  for (int i = 1; i < s.size; ++i)
    blocks.emplace_back(b, outgoing(s, ring_at(s.rank, i, s.size)), chunk.is_cut());
  for (PackedBlock& block : blocks) block.pack();
  for (; !chunk.done(); chunk.next()) {
    for (int i = 1; i < s.size; ++i) {
      const int rank = ring_at(s.rank, i, s.size);
      chunk.wait_until_read(rank);
      blocks[static_cast<std::size_t>(i - 1)].copy_to(chunk.of(rank), chunk.begin(), chunk.count());
    }
    chunk.signal();
  }
  copy_own_block(b);
}

void take(Builder& b, NodeChunks& chunk) {
  const Shape& s = b.shape();
  PackedBlock own(b, incoming(s, s.rank), chunk.is_cut());
  for (; !chunk.done(); chunk.next()) {
    chunk.signal_if_reused();
    chunk.wait(s.root);
    own.copy_from(chunk.of(s.rank), chunk.begin(), chunk.count());
  }
  own.unpack();
}

}  // namespace

void scatter_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = *agreed_bytes(s) / s.size;
  if (s.size == 1) return copy_own_block(b);
  if (bytes == 0) return;
  NodeChunks chunk(b, bytes);
  if (s.rank == s.root)
    give_all(b, chunk);
  else
    take(b, chunk);
}

}  // namespace weft
