// Gather in the node's shared memory: every rank copies its block in, chunk by chunk, and the root
// copies all out. With p ranks and blocks of n bytes, the root copies p n bytes, the others n. If
// the blocks fit into one chunk, only the root waits. Graham, Shipman, MPI support for multi-core
// architectures, EuroPVM/MPI 2008
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/own_block.h"
#include "coll/packed_block.h"
#include "patterns/ring.h"

namespace weft {
namespace {

void give(Builder& b, NodeChunks& chunk) {
  const Shape& s = b.shape();
  PackedBlock own(b, outgoing(s, 0), chunk.is_cut());
  own.pack();
  for (; !chunk.done(); chunk.next()) {
    chunk.wait_until_read(s.root);
    own.copy_to(chunk.of(s.rank), chunk.begin(), chunk.count());
    chunk.signal();
  }
}

void take_all(Builder& b, NodeChunks& chunk) {
  const Shape& s = b.shape();
  // Blocks of the other ranks, beginning with the rank above the root.
  std::vector<PackedBlock> blocks;
  for (int i = 1; i < s.size; ++i)
    blocks.emplace_back(b, incoming(s, ring_at(s.rank, i, s.size)), chunk.is_cut());
  for (; !chunk.done(); chunk.next()) {
    chunk.signal_if_reused();
    for (int i = 1; i < s.size; ++i) {
      const int rank = ring_at(s.rank, i, s.size);
      chunk.wait(rank);
      blocks[static_cast<std::size_t>(i - 1)].copy_from(chunk.of(rank), chunk.begin(),
                                                        chunk.count());
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
  NodeChunks chunk(b, bytes);
  if (s.rank == s.root)
    take_all(b, chunk);
  else
    give(b, chunk);
}

}  // namespace weft
