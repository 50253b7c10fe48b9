// Flat allreduce in the node's shared memory: every rank copies its vector in, and reduces all
// vectors by itself. A single exchange gives the least latency; short vectors travel in the ranks'
// slots, one cache line each. With vectors of n bytes on p ranks, each rank copies n bytes and
// reduces (p - 1) n, which is too much for long vectors. All ranks combine in the same order, so
// the result is bitwise identical everywhere and right for non-commutative operators. Jocksch,
// Piccinali, shared-memory persistent allreduce (short messages, no special treatment)
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
  // A rank reads its own operand from its private input where possible, since its shared copy is
  // slow to read while others read it. In place, the receive buffer holds the input and is
  // overwritten by the sum of the higher ranks, so only the last two ranks can read their input
  // there.
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
