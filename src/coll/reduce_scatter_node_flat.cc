// Flat reduce-scatter in the node's shared memory: every rank copies its vector except its own
// block in, one piece of each block at a time, and reduces its block from all vectors in rank
// order. With p ranks and blocks of n bytes, each rank copies (p - 1) n bytes and reduces as many.
// There is a single exchange, which also suits long vectors of non-commutative operators. Graham,
// Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008
#include <algorithm>

#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/packer.h"
#include "coll/reduce_in_order.h"

namespace weft {
namespace {

std::int64_t longest_block(const Shape& s) {
  std::int64_t most = 0;
  for (int rank = 0; rank < s.size; ++rank) most = std::max(most, outgoing(s, rank).count);
  return most;
}

Operand piece_of(const Shape& s, const NodeChunks& chunk, int rank) {
  const Operand block = outgoing(s, rank);
  return {block.at + chunk.begin() * s.recv.extent, chunk.count(block.count), block.unit};
}

// Copies this rank's pieces of all other ranks' blocks into shared memory. Returns where this
// rank's own block begins in every other rank's memory, in bytes.
std::int64_t copy_in(Builder& b, const NodeChunks& chunk) {
  const Shape& s = b.shape();
  Packer packer(b, Packer::Way::pack, chunk.of(s.rank));
  std::int64_t end = 0, own = 0;
  for (int rank = 0; rank < s.size; ++rank) {
    const Operand piece = piece_of(s, chunk, rank);
    if (rank == s.rank) {
      own = end;
      packer.skip(piece);
    } else {
      packer.add(piece);
    }
    end += payload_bytes(b, piece);
  }
  packer.finish();
  return own;
}

}  // namespace

void reduce_scatter_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const Operand result = incoming(s, s.rank);
  const std::int64_t most = longest_block(s);
  if (s.size == 1) return b.copy(outgoing(s, 0), result);
  if (most == 0) return;
  b.synchronizes();
  // If the call is in place, the result would overwrite input that is still to be copied, so the
  // sum goes to a temporary buffer.
  const Location sum = s.in_place ? b.temp(result.count, Unit::recv) : result.at;
  NodeChunks chunk = NodeChunks::exchanged(b, most, s.size * s.recv.extent);
  for (; !chunk.done(); chunk.next()) {
    const std::int64_t own = copy_in(b, chunk);
    chunk.signal();
    const Operand piece = piece_of(s, chunk, s.rank);
    const auto operand = [&](int rank) {
      chunk.wait(rank);
      return rank == s.rank ? piece.at : chunk.of(rank) + own;
    };
    reduce_in_order(b, s.size, operand, sum + chunk.begin() * s.recv.extent, piece.count);
  }
  b.copy(sum, result.at, result.count);
}

}  // namespace weft
