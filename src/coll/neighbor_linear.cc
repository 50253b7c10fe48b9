// Linear neighborhood collective: all receives are posted, then all sends, one message per block.
// No rank waits for another's progress.
// Hoefler, Schneider, SC12
#include "coll/build_functions.h"
#include "coll/neighbors.h"

namespace weft {

void neighbor_linear(Builder& b) {
  const Shape& s = b.shape();
  receive_from_neighbors(b);
  for (int i = 0; i < static_cast<int>(s.destinations.size()); ++i) {
    const int peer = s.destinations[static_cast<std::size_t>(i)];
    if (peer >= 0 && peer != s.rank) b.send(peer, outgoing(s, i));
  }
  copy_to_self(b);
}

}  // namespace weft
