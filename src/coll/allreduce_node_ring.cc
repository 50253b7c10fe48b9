// Allreduce in the node's shared memory: each block of the vector passes from rank to rank, each of
// which adds its operand (NodeRing); then every rank copies all blocks out, its own one during its
// reduction. With vectors of n bytes on p ranks, each rank copies n bytes and reduces (p - 1) n /
// p. It suits long vectors. With d NUMA domains, 2 (d - 1) n bytes cross domain borders, the
// minimum: the owner of a block adds the other domains' sums to its own domain's, and each other
// domain fetches the result once. Jocksch, Piccinali, shared-memory persistent allreduce (copy in
// with reduction, chunks, several sockets)
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
