// Allreduce in the node's shared memory in rank order: every rank copies its vector in, chunk by
// chunk, and reduces one block of it over all ranks. The sums overwrite the highest rank's shared
// copy, from which all ranks copy them out. With vectors of n bytes on p ranks, each rank copies 2
// n bytes and reduces (p - 1) n / p. It suits long vectors whose order matters. Jocksch, Piccinali,
// shared-memory persistent allreduce (two steps)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/nothing_to_reduce.h"
#include "coll/reduce_in_order.h"
#include "patterns/blocks.h"

namespace weft {

void allreduce_node_in_order(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t extent = s.recv.extent;
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  // A rank signals twice per chunk: when it has written its operand, and when it has reduced its
  // block.
  constexpr int kWritten = 1, kReduced = 2;
  for (NodeChunks chunk(b, s.recv.count, extent, kReduced); !chunk.done(); chunk.next()) {
    const Blocks blocks{chunk.count(), s.size};
    const std::int64_t block = blocks.begin(s.rank) * extent;
    const std::int64_t whole = chunk.begin() * extent;
    const Location sums = chunk.of(s.size - 1);
    b.copy(b.input() + whole, chunk.of(s.rank), chunk.count());
    chunk.signal();
    const auto operand = [&](int rank) {
      chunk.wait(rank, kWritten);
      return chunk.of(rank) + block;
    };
    reduce_in_order(b, s.size, operand, sums + block, blocks.length(s.rank));
    chunk.signal();
    for (int rank = 0; rank < s.size; ++rank) chunk.wait(rank, kReduced);
    b.copy(sums, Location{Buffer::recv, whole}, chunk.count());
  }
}

}  // namespace weft
