// Single-copy allgather(v) for ranks that can access each other's blocks: each rank copies all
// blocks directly. With p ranks and blocks of n bytes, each rank copies p n bytes, in place (p - 1)
// n.
// Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include "coll/build_functions.h"
#include "coll/direct.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void allgather_node_direct(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return copy_own_block(b);
  if (*agreed_bytes(s) == 0) return;
  b.meet(Builder::Shows::input);
  for (int i = 1; i < s.size; ++i) {
    const int rank = ring_at(s.rank, i, s.size);
    const Operand block = incoming(s, rank);
    b.copy({b.input_of(rank), payload_bytes(s, block), Unit::byte}, block);
  }
  copy_own_block(b);
  part_from_all(b);
}

}  // namespace weft
