// Scan and exscan in the node's memory along the chain of ranks, chunk after chunk: each adds its
// own to what the rank below it shows, and shows the sum to the rank above, which meanwhile is at
// work on the chunk before. Each rank copies n bytes and reduces n, however many ranks there are,
// and each border between NUMA domains of consecutive ranks is crossed once. Keeps the order of
// operands. Hoefler, Lumsdaine, Rehm, SC07 (LibNBC, the chain); Jocksch, Piccinali, shared-memory
// persistent allreduce (chunks)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"

namespace weft {
namespace {

// A rank begins when the first chunk has come through all those below it, so chunks are shorter
// than where all begin at once.
std::int64_t most(const Builder& b) {
  return std::max<std::int64_t>(b.tuning().chunk_bytes / 2 / b.shape().recv.extent, 1);
}

// A rank that has signalled a chunk has read what lay below.
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
