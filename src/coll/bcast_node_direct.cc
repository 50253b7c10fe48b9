// Single-copy bcast for ranks that can access the root's buffer: each rank but the root copies the
// data directly, however many ranks there are.
// Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include "coll/build_functions.h"
#include "coll/direct.h"

namespace weft {

void bcast_node_direct(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (s.size == 1 || bytes == 0) return;
  const bool is_root = s.rank == s.root;
  b.meet(is_root ? Builder::Shows::input : Builder::Shows::nothing);
  if (!is_root) b.copy({b.input_of(s.root), bytes, Unit::byte}, incoming(s, s.rank));
  part_from_others(b, s.root);
}

}  // namespace weft
