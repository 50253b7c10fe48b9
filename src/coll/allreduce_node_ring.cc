// Allreduce in the node's memory by copy-in with reduction (NodeRing), then everyone copies all
// blocks out. Each rank copies n + n / p bytes and reduces the other (p - 1) n / p, so it is the
// one for long vectors. Jocksch, Piccinali, shared-memory persistent allreduce (copy in with
// reduction, chunks)
#include "coll/build_functions.h"
#include "coll/node_ring.h"
#include "coll/nothing_to_reduce.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {

void allreduce_node_ring(Builder& b) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  for (NodeRing ring(b, Blocks{s.recv.count, s.size}.borders()); !ring.done(); ring.next()) {
    ring.copy_in(ring.shared(s.rank));
    for (int i = 0; i < s.size; ++i) ring.copy_out(ring_at(s.rank, i, s.size));
  }
}

}  // namespace weft
