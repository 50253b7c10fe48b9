// Flat barrier in the node's shared memory: every rank raises its counter and waits for those of
// all others.
// Mellor-Crummey, Scott, ACM TOCS 9(1), 1991
#include "coll/build_functions.h"

namespace weft {

void barrier_node_flat(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return;
  b.synchronizes();
  b.exchanges_once();
  const std::uint32_t here = b.signal();
  for (int i = 1; i < s.size; ++i) b.wait((s.rank + i) % s.size, here);
}

}  // namespace weft
