// Reduce in the node's memory by copy-in with reduction (NodeRing), then the root copies all blocks
// out. Each rank copies n / p bytes and reduces the other (p - 1) n / p, the root copies n more:
// for long vectors. Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction,
// chunks)
#include "coll/build_functions.h"
#include "coll/node_ring.h"
#include "coll/nothing_to_reduce.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {

void reduce_node_ring(Builder& b) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  for (NodeRing ring(b, Blocks{s.recv.count, s.size}.borders()); !ring.done(); ring.next()) {
    ring.wait_until_read(s.root);
    ring.copy_in(ring.shared(s.rank));
    if (s.rank != s.root) continue;
    for (int i = 0; i < s.size; ++i) ring.copy_out(ring_at(s.rank, i, s.size));
  }
}

}  // namespace weft
