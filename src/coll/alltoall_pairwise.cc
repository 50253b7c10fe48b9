// Pairwise alltoall: p - 1 rounds for p ranks, in each of which every rank sends and receives one
// message. It suits long messages.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include "coll/alltoall_blocks.h"
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void alltoall_pairwise(Builder& b) {
  const Shape& s = b.shape();
  AlltoallBlocks blocks(b);
  blocks.save_input();
  for (const int step : b.iterations(1, s.size)) {
    blocks.receive_from(ring_at(s.rank, -step, s.size));
    blocks.send_to(ring_at(s.rank, step, s.size));
    if (step == 1) copy_own_block(b);
    b.end_round();
  }
  if (s.size == 1) copy_own_block(b);
}

}  // namespace weft
