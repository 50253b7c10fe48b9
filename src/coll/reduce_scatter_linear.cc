// Linear reduce-scatter: every rank sends each other rank its block, all messages posted at once,
// so that no rank waits for another's progress; what has come is then reduced in the order of the
// ranks. Keeps the order of operands. Needs space for all that comes. Hoefler, Lumsdaine, Rehm,
// SC07 (LibNBC)
#include <vector>

#include "coll/build_functions.h"
#include "patterns/ring.h"

namespace weft {

void reduce_scatter_linear(Builder& b) {
  const Shape& s = b.shape();
  const Operand own = outgoing(s, s.rank);
  const Operand result = incoming(s, s.rank);
  const int last = s.size - 1;
  // In place, the result is written where input still lies that is being sent.
  const Location sum = s.in_place ? b.temp(result.count, Unit::recv) : result.at;
  std::vector<Location> parts(static_cast<std::size_t>(s.size), own.at);
  for (int step = 1; step < s.size; ++step) {
    const int peer = ring_at(s.rank, -step, s.size);
    parts[static_cast<std::size_t>(peer)] = peer == last ? sum : b.temp(result.count, Unit::recv);
    b.recv(peer, parts[static_cast<std::size_t>(peer)], result.count);
  }
  for (int step = 1; step < s.size; ++step) {
    const int peer = ring_at(s.rank, step, s.size);
    b.send(peer, outgoing(s, peer));
  }
  if (s.rank == last) b.copy(own.at, sum, result.count);
  b.end_round();
  for (int rank = last - 1; rank >= 0; --rank)
    b.reduce(parts[static_cast<std::size_t>(rank)], sum, result.count);
  b.copy(sum, result.at, result.count);
}

}  // namespace weft
