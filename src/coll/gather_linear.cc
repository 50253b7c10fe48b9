// Linear gather: every rank sends its block to the root, which posts all receives at once. Other
// ranks send only their own message and forward none.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void gather_linear(Builder& b) {
  const Shape& s = b.shape();
  if (s.rank != s.root) return b.send(s.root, outgoing(s, 0));
  for (int step = 1; step < s.size; ++step) {
    const int peer = ring_at(s.rank, step, s.size);
    b.recv(peer, incoming(s, peer));
  }
  copy_own_block(b);
}

}  // namespace weft
