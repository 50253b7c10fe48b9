// Ring allgather: p - 1 rounds for p ranks, in each of which every rank sends one block to its
// neighbour.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void allgather_ring(Builder& b) {
  const Shape& s = b.shape();
  const int previous = ring_at(s.rank, -1, s.size);
  const int next = ring_at(s.rank, 1, s.size);
  for (const int step : b.iterations(0, s.size - 1)) {
    const int given = ring_at(s.rank, -step, s.size);
    b.recv(previous, incoming(s, ring_at(given, -1, s.size)));
    b.send(next, step == 0 ? outgoing(s, s.rank) : incoming(s, given));
    if (step == 0) copy_own_block(b);
    b.end_round();
  }
  if (s.size == 1) copy_own_block(b);
}

}  // namespace weft
