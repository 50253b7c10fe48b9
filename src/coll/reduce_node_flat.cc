// Flat reduce in the node's shared memory: every rank copies its vector in, chunk by chunk, and the
// root reduces all of them in rank order. With vectors of n bytes on p ranks, the root reduces (p -
// 1) n bytes, the others copy n. It suits short vectors and non-commutative operators.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008 (fan-in)
#include "coll/build_functions.h"
#include "coll/node_chunks.h"
#include "coll/nothing_to_reduce.h"
#include "coll/reduce_in_order.h"

namespace weft {

void reduce_node_flat(Builder& b) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  const bool is_root = s.rank == s.root;
  // The root copies its operand in only if the call is in place, since the result would overwrite
  // it.
  const bool copies_in = !is_root || s.in_place;
  for (NodeChunks chunk(b, s.recv.count, s.recv.extent); !chunk.done(); chunk.next()) {
    const std::int64_t offset = chunk.begin() * s.recv.extent;
    chunk.wait_until_read(s.root);
    if (copies_in) b.copy(b.input() + offset, chunk.of(s.rank), chunk.count());
    if (!is_root) {
      chunk.signal();
      continue;
    }
    chunk.signal_if_reused();
    const auto operand = [&](int rank) {
      chunk.wait(rank);
      return rank == s.root && !copies_in ? b.input() + offset : chunk.of(rank);
    };
    reduce_in_order(b, s.size, operand, Location{Buffer::recv, offset}, chunk.count());
  }
}

}  // namespace weft
