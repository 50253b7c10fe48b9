// Linear alltoall: all messages are posted at once, so no rank waits for another's progress. Each
// rank starts with its next neighbour, so that not all ranks send to the same one first.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include "coll/alltoall_blocks.h"
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void alltoall_linear(Builder& b) {
  const Shape& s = b.shape();
  AlltoallBlocks blocks(b);
  blocks.save_input();
  for (int step = 1; step < s.size; ++step) blocks.receive_from(ring_at(s.rank, -step, s.size));
  for (int step = 1; step < s.size; ++step) blocks.send_to(ring_at(s.rank, step, s.size));
  copy_own_block(b);
}

}  // namespace weft
