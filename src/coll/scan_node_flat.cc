// Flat scan and exscan in the node's shared memory: every rank copies its vector in, chunk by
// chunk, and reduces the vectors of the ranks below it by itself, in rank order. There is only one
// exchange. With vectors of n bytes, rank r copies n bytes and reduces r n, in an exscan (r - 1) n,
// which is too much for long vectors.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008 (fan-in)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/reduce_in_order.h"

namespace weft {
namespace {

// Computes the sum of the vectors of ranks 0, …, ranks - 1 as this rank's result. The last of these
// may be this rank itself.
void sum_of_first(Builder& b, int ranks) {
  const Shape& s = b.shape();
  if (s.recv.count == 0) return;
  for (NodeChunks chunk(b, s.recv.count, s.recv.extent); !chunk.done(); chunk.next()) {
    const std::int64_t offset = chunk.begin() * s.recv.extent;
    if (s.rank + 1 < s.size) {
      for (int rank = s.rank + 1; rank < s.size; ++rank) chunk.wait_until_read(rank);
      b.copy(b.input() + offset, chunk.of(s.rank), chunk.count());
      chunk.signal();
    } else {
      chunk.signal_if_reused();
    }
    if (ranks == 0) continue;
    const auto operand = [&](int rank) {
      chunk.wait(rank);
      return rank == s.rank ? b.input() + offset : chunk.of(rank);
    };
    reduce_in_order(b, ranks, operand, Location{Buffer::recv, offset}, chunk.count());
  }
}

}  // namespace

void scan_node_flat(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return b.copy(b.input(), {Buffer::recv, 0}, s.recv.count);
  sum_of_first(b, s.rank + 1);
}

void exscan_node_flat(Builder& b) {
  if (b.shape().size > 1) sum_of_first(b, b.shape().rank);
}

}  // namespace weft
