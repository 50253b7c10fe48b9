// Single-copy gather for a root that can access all ranks' buffers: it copies the blocks directly.
// With p ranks and blocks of n bytes, the root copies p n bytes, the others nothing.
// Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include "coll/build_functions.h"
#include "coll/direct.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void gather_node_direct(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = *agreed_bytes(s) / s.size;
  if (s.size == 1) return copy_own_block(b);
  if (bytes == 0) return;
  const bool is_root = s.rank == s.root;
  b.meet(is_root ? Builder::Shows::nothing : Builder::Shows::input);
  for (int i = 1; is_root && i < s.size; ++i) {
    const int rank = ring_at(s.rank, i, s.size);
    b.copy({b.input_of(rank), bytes, Unit::byte}, incoming(s, rank));
  }
  part_from_one(b, s.root);
  if (is_root) copy_own_block(b);
}

}  // namespace weft
