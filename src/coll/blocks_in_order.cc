// Implements the reduction of a block in rank order (blocks_in_order.h). The block of the highest
// rank is received where the sum will be; the others need temporary space.
#include "coll/blocks_in_order.h"

#include <vector>

#include "patterns/ring.h"

namespace weft {

void sum_blocks_in_order(Builder& b, const std::function<Operand(int)>& block, Location sum) {
  const Shape& s = b.shape();
  const Operand own = block(s.rank);
  const int last = s.size - 1;
  std::vector<Location> parts(static_cast<std::size_t>(s.size), own.at);
  for (int step = 1; step < s.size; ++step) {
    const int peer = ring_at(s.rank, -step, s.size);
    Location& part = parts[static_cast<std::size_t>(peer)];
    part = peer == last ? sum : b.temp(own.count, Unit::recv);
    b.recv(peer, part, own.count);
  }
  for (int step = 1; step < s.size; ++step) {
    const int peer = ring_at(s.rank, step, s.size);
    b.send(peer, block(peer));
  }
  if (s.rank == last) b.copy(own.at, sum, own.count);
  b.end_round();
  for (int rank = last - 1; rank >= 0; --rank)
    b.reduce(parts[static_cast<std::size_t>(rank)], sum, own.count);
}

}  // namespace weft
