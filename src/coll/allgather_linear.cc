// Linear allgather: every rank sends its block to all others. All messages are posted at once, so
// no rank waits for another's progress.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void allgather_linear(Builder& b) {
  const Shape& s = b.shape();
  for (int step = 1; step < s.size; ++step) {
    const int peer = ring_at(s.rank, -step, s.size);
    b.recv(peer, incoming(s, peer));
  }
  for (int step = 1; step < s.size; ++step)
    b.send(ring_at(s.rank, step, s.size), outgoing(s, s.rank));
  copy_own_block(b);
}

}  // namespace weft
