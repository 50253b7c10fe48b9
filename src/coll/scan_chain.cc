// Scan along the chain of ranks: each rank adds its input to the data from the rank below and sends
// the sum to the rank above. The algorithm keeps the order of operands.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include <vector>

#include "coll/accumulator.h"
#include "coll/build_functions.h"
#include "patterns/ring.h"

namespace weft {

void scan_chain(Builder& b) {
  const Shape& s = b.shape();
  const int previous = chain_previous(s.rank, 0, s.size);
  const int next = chain_next(s.rank, 0, s.size);
  std::vector<Side> parts;
  if (previous >= 0) parts.push_back(Side::lower);
  Accumulator sum(b, {Buffer::recv, 0}, parts);
  if (previous >= 0) {
    sum.receive(previous);
    sum.absorb();
  }
  if (next >= 0) b.send(next, sum.value(), s.recv.count);
  sum.finish();
}

}  // namespace weft
