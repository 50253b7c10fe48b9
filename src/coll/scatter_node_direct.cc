// Single-copy scatter for ranks that can access the root's buffer: each rank copies its own block
// directly. With blocks of n bytes, each rank copies n bytes.
// Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include "coll/build_functions.h"
#include "coll/direct.h"
#include "coll/own_block.h"

namespace weft {

void scatter_node_direct(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = *agreed_bytes(s) / s.size;
  if (s.size == 1) return copy_own_block(b);
  if (bytes == 0) return;
  const bool is_root = s.rank == s.root;
  b.meet(is_root ? Builder::Shows::input : Builder::Shows::nothing);
  if (is_root)
    copy_own_block(b);
  else
    b.copy({b.input_of(s.root) + s.rank * bytes, bytes, Unit::byte}, incoming(s, s.rank));
  part_from_others(b, s.root);
}

}  // namespace weft
