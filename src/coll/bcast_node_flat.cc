// Bcast in the node's memory: the root copies the data there part after part, the others copy them
// out, all at once. Each rank copies n bytes, however many ranks there are; a few bytes travel in
// the line of the root's counter.
// Graham, Shipman, MPI support for multi-core architectures, EuroPVM/MPI 2008 (fan-out)
#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/packed_block.h"

namespace weft {

void bcast_node_flat(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t bytes = s.recv.bytes();
  if (s.size == 1 || bytes == 0) return;
  NodeParts part(b, bytes);
  PackedBlock data(b, outgoing(s, 0), part.is_cut());
  const bool is_root = s.rank == s.root;
  if (is_root) data.pack();
  for (; !part.done(); part.next()) {
    if (is_root) {
      for (int rank = 0; rank < s.size; ++rank) part.wait_until_read(rank);
      data.copy_to(part.of(s.root), part.begin(), part.count());
      part.signal();
    } else {
      part.signal_if_reused();
      part.wait(s.root);
      data.copy_from(part.of(s.root), part.begin(), part.count());
    }
  }
  if (!is_root) data.unpack();
}

}  // namespace weft
