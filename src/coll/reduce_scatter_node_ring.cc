// Reduce-scatter in the node's shared memory: each block of the vector passes from rank to rank,
// each of which adds its operand (NodeRing). The owner of a block is the last, and keeps the sum.
// With p ranks and blocks of n bytes, each rank copies n bytes and reduces (p - 1) n. It suits long
// vectors. With d NUMA domains, (d - 1) p n bytes cross domain borders, the minimum. Jocksch,
// Piccinali, shared-memory persistent allreduce (copy in with reduction, chunks, several sockets)
#include <vector>

#include "coll/build_functions.h"
#include "coll/node_ring.h"

namespace weft {
namespace {

void reduce_scatter_by_rings(Builder& b, const Domains& domains) {
  const Shape& s = b.shape();
  const Operand result = incoming(s, s.rank);
  if (s.size == 1) return b.copy(outgoing(s, 0), result);
  std::vector<std::int64_t> borders{0};
  for (int rank = 0; rank < s.size; ++rank)
    borders.push_back(borders.back() + outgoing(s, rank).count);
  if (borders.back() == 0) return;
  b.synchronizes();
  const std::int64_t own_begin = borders[static_cast<std::size_t>(s.rank)] * s.recv.extent;
  // If the call is in place, the result would overwrite input that is still to be copied, so the
  // sum goes to a temporary buffer.
  const Location sum = s.in_place ? b.temp(result.count, Unit::recv) : result.at;
  NodeRing ring(b, domains, borders, NodeRing::Result::own_block);
  for (; !ring.done(); ring.next()) ring.sum_up(sum + (ring.offset(s.rank) - own_begin));
  b.copy(sum, result.at, result.count);
}

}  // namespace

void reduce_scatter_node_ring(Builder& b) {
  reduce_scatter_by_rings(b, Domains::one(b.shape().size));
}

void reduce_scatter_domain_ring(Builder& b) {
  reduce_scatter_by_rings(b, *b.shape().domains);
}

}  // namespace weft
