// Allreduce in the node's memory by copy-in with reduction (NodeRing), then everyone copies all
// blocks out, its own while it reduces it. Each rank copies n bytes and reduces (p - 1) n / p: for
// long vectors. By domains, d of them, 2 (d - 1) n bytes cross their borders, the least: the owner
// of a block adds the sums of the other domains to its own domain's, and each of them fetches the
// result once.
// Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction, chunks, several
// sockets)
#include "coll/build_functions.h"
#include "coll/node_ring.h"
#include "coll/nothing_to_reduce.h"
#include "patterns/blocks.h"

namespace weft {
namespace {

void allreduce_by_rings(Builder& b, const Domains& domains) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  NodeRing ring(b, domains, Blocks{s.recv.count, s.size}.borders(), NodeRing::Result::for_all);
  for (; !ring.done(); ring.next()) {
    ring.sum_up(ring.shared());
    ring.copy_out();
  }
}

}  // namespace

void allreduce_node_ring(Builder& b) {
  allreduce_by_rings(b, Domains::one(b.shape().size));
}

void allreduce_domain_ring(Builder& b) {
  allreduce_by_rings(b, *b.shape().domains);
}

}  // namespace weft
