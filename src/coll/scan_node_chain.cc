// Scan and exscan in the node's shared memory along the chain of ranks, chunk by chunk: each rank
// adds its input to the sum of the rank below and stores the result for the rank above, which works
// on the previous chunk meanwhile. With vectors of n bytes, each rank copies n bytes and reduces n,
// however many ranks there are. If the ranks of each NUMA domain are consecutive, the data cross
// each domain border once. The algorithm keeps the order of operands. Hoefler, Lumsdaine, Rehm,
// SC07 (LibNBC, the chain); Jocksch, Piccinali, shared-memory persistent allreduce (chunks)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"

namespace weft {
namespace {

// Returns the most elements of a chunk. Chunks are shorter than in other algorithms, since a rank
// starts only when the first chunk has passed all ranks below it.
std::int64_t most(const Builder& b) {
  return std::max<std::int64_t>(b.tuning().chunk_bytes / 2 / b.shape().recv.extent, 1);
}

// Builds the scan along the chain of ranks. When a rank signals a chunk, it has also read that
// chunk of the rank below.
void scan_along_chain(Builder& b, bool exclusive) {
  const Shape& s = b.shape();
  const int below = s.rank - 1, above = s.rank + 1;
  const bool is_lowest = below < 0, is_highest = above == s.size;
  for (NodeChunks chunk(b, s.recv.count, s.recv.extent, 1, most(b)); !chunk.done(); chunk.next()) {
    const std::int64_t offset = chunk.begin() * s.recv.extent, count = chunk.count();
    const Location input = b.input() + offset, result{Buffer::recv, offset};
    const Location shown = chunk.of(s.rank);
    if (!is_highest) chunk.wait_until_passed_on(above);
    if (!is_lowest) chunk.wait(below);
    const Location lower = is_lowest ? Location{} : chunk.of(below);

    if (is_lowest)
      b.copy(input, shown, count);
    else if (!is_highest || !exclusive)
      b.reduce(lower, input, is_highest ? result : shown, count);
    if (exclusive && !is_lowest) b.copy(lower, result, count);
    if (is_highest)
      chunk.signal_if_reused();
    else
      chunk.signal();
    if (!exclusive && !is_highest) b.copy(is_lowest ? input : shown, result, count);
  }
}

}  // namespace

void scan_node_chain(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return b.copy(b.input(), {Buffer::recv, 0}, s.recv.count);
  scan_along_chain(b, false);
}

void exscan_node_chain(Builder& b) {
  if (b.shape().size > 1) scan_along_chain(b, true);
}

}  // namespace weft
