// Scan in log2(p) rounds for p ranks: in round k each rank sends its sum to the rank 2^k above it,
// and adds the sum received from the rank 2^k below. Its sum thus covers twice as many ranks after
// each round. The algorithm keeps the order of operands.
// Hillis, Steele, CACM 29(12), 1986
#include <vector>

#include "coll/accumulator.h"
#include "coll/build_functions.h"

namespace weft {

void scan_recursive_doubling(Builder& b) {
  const Shape& s = b.shape();
  std::vector<Side> parts;
  for (int distance = 1; distance <= s.rank; distance *= 2) parts.push_back(Side::lower);
  Accumulator sum(b, {Buffer::recv, 0}, parts);
  for (int distance = 1; distance < s.size; distance *= 2) {
    const bool takes = s.rank >= distance;
    if (takes) sum.receive(s.rank - distance);
    if (s.rank + distance < s.size) b.send(s.rank + distance, sum.value(), s.recv.count);
    if (takes)
      sum.absorb();
    else
      b.end_round();
  }
  sum.finish();
}

}  // namespace weft
