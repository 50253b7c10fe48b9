// Linear scatter: the root sends each rank its block; all messages are posted at once.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void scatter_linear(Builder& b) {
  const Shape& s = b.shape();
  if (s.rank != s.root) return b.recv(s.root, incoming(s, 0));
  for (int step = 1; step < s.size; ++step) {
    const int peer = ring_at(s.rank, step, s.size);
    b.send(peer, outgoing(s, peer));
  }
  copy_own_block(b);
}

}  // namespace weft
