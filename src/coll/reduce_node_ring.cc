// Reduce in the node's shared memory: each block of the vector passes from rank to rank, each of
// which adds its operand (NodeRing); then the root copies all other blocks out. With vectors of n
// bytes on p ranks, each rank copies n / p bytes and reduces the other (p - 1) n / p; the root
// copies n bytes. It suits long vectors. With d NUMA domains the blocks belong to the ranks of the
// root's domain, so (d - 1) n bytes cross domain borders, the minimum. Jocksch, Piccinali,
// shared-memory persistent allreduce (copy in with reduction, chunks, several sockets)
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_ring.h"
#include "coll/nothing_to_reduce.h"
#include "patterns/blocks.h"

namespace weft {
namespace {

// Divides the vector into blocks for the ranks of the root's domain, and returns the block borders
// for all ranks. The other ranks have empty blocks.
std::vector<std::int64_t> borders_near_the_root(const Shape& s, const Domains& domains) {
  const int home = domains.of(s.root);
  const Blocks blocks{s.recv.count, domains.ranks_on(home)};
  std::vector<std::int64_t> borders{0};
  for (int rank = 0; rank < s.size; ++rank)
    borders.push_back(domains.of(rank) == home ? blocks.begin(domains.local_rank(rank) + 1)
                                               : borders.back());
  return borders;
}

void reduce_by_rings(Builder& b, const Domains& domains) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  NodeRing ring(b, domains, borders_near_the_root(s, domains), NodeRing::Result::for_one);
  for (; !ring.done(); ring.next()) {
    const bool is_root = s.rank == s.root;
    ring.wait_until_read(s.root);
    ring.sum_up(is_root ? Location{Buffer::recv, ring.offset(s.rank)} : ring.shared());
    if (is_root) ring.copy_out();
  }
}

}  // namespace

void reduce_node_ring(Builder& b) {
  reduce_by_rings(b, Domains::one(b.shape().size));
}

void reduce_domain_ring(Builder& b) {
  reduce_by_rings(b, *b.shape().domains);
}

}  // namespace weft
