// Allreduce in the node's memory, flat: every rank puts its vector there and reduces all of them by
// itself. One exchange, so the least latency; short vectors travel in the ranks' slots. Each rank
// copies n bytes and reduces (p - 1) n, which is too much for long vectors.
// All ranks combine in the same order, so that the result is the same, bit for bit, everywhere and
// right for operators that do not commute.
// Jocksch, Piccinali, shared-memory persistent allreduce (short messages, no special treatment)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/nothing_to_reduce.h"
#include "coll/reduce_in_order.h"

namespace weft {

void allreduce_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const Location result{Buffer::recv, 0};
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  // Others read what this rank shows while it reduces, which makes reading that slow. In place, the
  // sum of the ranks behind takes the input's place before it is added, but for the last two ranks.
  const bool keeps_input = !s.in_place || s.rank >= s.size - 2;
  NodeChunks chunk = NodeChunks::exchanged(b, s.recv.count, s.recv.extent);
  if (!chunk.is_cut()) b.exchanges_once();
  for (; !chunk.done(); chunk.next()) {
    const std::int64_t offset = chunk.begin() * s.recv.extent;
    b.copy(b.input() + offset, chunk.of(s.rank), chunk.count());
    chunk.signal();
    const auto operand = [&](int rank) {
      chunk.wait(rank);
      return rank == s.rank && keeps_input ? b.input() + offset : chunk.of(rank);
    };
    reduce_in_order(b, s.size, operand, result + offset, chunk.count());
  }
}

}  // namespace weft
