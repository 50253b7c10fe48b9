// Linear reduce-scatter: every rank sends each other rank its block. All messages are posted at
// once, so no rank waits for another's progress. The received blocks need temporary space; then
// they are reduced in rank order. Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include "coll/blocks_in_order.h"
#include "coll/build_functions.h"

namespace weft {

void reduce_scatter_linear(Builder& b) {
  const Shape& s = b.shape();
  const Operand result = incoming(s, s.rank);
  // If the call is in place, the sum goes to a temporary buffer first, since the result would
  // overwrite input that is still being sent.
  const Location sum = s.in_place ? b.temp(result.count, Unit::recv) : result.at;
  sum_blocks_in_order(
      b, [&](int rank) { return outgoing(s, rank); }, sum);
  b.copy(sum, result.at, result.count);
}

}  // namespace weft
