// Allreduce in the node's memory in the order of the ranks: everyone copies its vector in, part
// after part, reduces one block of it over all ranks, into the highest rank's memory, and copies
// the whole sum out. Each rank copies 2 n bytes and reduces (p - 1) n / p: for long vectors whose
// order matters.
// Jocksch, Piccinali, shared-memory persistent allreduce (two steps)
#include "coll/build_functions.h"
#include "coll/node_parts.h"
#include "coll/nothing_to_reduce.h"
#include "coll/reduce_in_order.h"
#include "patterns/blocks.h"

namespace weft {

void allreduce_node_in_order(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t extent = s.recv.extent;
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  constexpr int kWritten = 1, kReduced = 2;  // signals of a part
  for (NodeParts part(b, s.recv.count, extent, kReduced); !part.done(); part.next()) {
    const Blocks blocks{part.count(), s.size};
    const std::int64_t block = blocks.begin(s.rank) * extent;
    const std::int64_t whole = part.begin() * extent;
    const Location sums = part.of(s.size - 1);
    b.copy(b.input() + whole, part.of(s.rank), part.count());
    part.signal();
    const auto operand = [&](int rank) {
      part.wait(rank, kWritten);
      return part.of(rank) + block;
    };
    reduce_in_order(b, s.size, operand, sums + block, blocks.length(s.rank));
    part.signal();
    for (int rank = 0; rank < s.size; ++rank) part.wait(rank, kReduced);
    b.copy(sums, Location{Buffer::recv, whole}, part.count());
  }
}

}  // namespace weft
