// Linear reduce-scatter: every rank sends each other rank its block, all messages posted at once,
// so that no rank waits for another's progress; what has come is then reduced in the order of the
// ranks. Needs space for all that comes. Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include "coll/blocks_in_order.h"
#include "coll/build_functions.h"

namespace weft {

void reduce_scatter_linear(Builder& b) {
  const Shape& s = b.shape();
  const Operand result = incoming(s, s.rank);
  // In place, the sum goes to a temporary buffer first, since input that is still being sent lies
  // where the result belongs.
  const Location sum = s.in_place ? b.temp(result.count, Unit::recv) : result.at;
  sum_blocks_in_order(
      b, [&](int rank) { return outgoing(s, rank); }, sum);
  b.copy(sum, result.at, result.count);
}

}  // namespace weft
