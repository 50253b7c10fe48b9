// Bruck's allgather: ceil(log2 p) rounds for any number of ranks, for short messages.
// Packed blocks gather in temp, the own one first, and are put in order at the end.
// Bruck et al., IEEE TPDS 8(11), 1997
#include <algorithm>

#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void allgather_bruck(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return copy_own_block(b);
  const std::int64_t block_bytes = s.recv.bytes();
  const Location gathered = b.temp(s.size * block_bytes, Unit::byte);
  b.copy({b.input(), input_count(b), b.input_unit()}, {gathered, block_bytes, Unit::byte});
  b.end_round();
  for (int have = 1; have < s.size; have *= 2) {
    const std::int64_t bytes = std::min(have, s.size - have) * block_bytes;
    b.recv(ring_at(s.rank, have, s.size), gathered + have * block_bytes, bytes, Unit::byte);
    b.send(ring_at(s.rank, -have, s.size), gathered, bytes, Unit::byte);
    b.end_round();
  }
  // Block i of temp is that of rank + i: those up to the last rank, then those from rank 0.
  const auto put = [&](int from, int first_rank, int blocks) {
    b.copy({gathered + from * block_bytes, blocks * block_bytes, Unit::byte},
           {{Buffer::recv, first_rank * s.recv.count * s.recv.extent},
            blocks * s.recv.count,
            Unit::recv});
  };
  const int own = s.in_place ? 1 : 0;  // already in place
  put(own, s.rank + own, s.size - s.rank - own);
  put(s.size - s.rank, 0, s.rank);
}

}  // namespace weft
