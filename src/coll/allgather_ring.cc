// Allgather around a ring: p - 1 rounds, one block to one neighbour in each.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include "coll/build_functions.h"
#include "coll/own_block.h"
#include "patterns/ring.h"

namespace weft {

void allgather_ring(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t block = s.recv.count * s.recv.extent;
  for (int step = 0; step < s.size - 1; ++step) {
    const int given = ring_at(s.rank, -step, s.size);
    const int taken = ring_at(given, -1, s.size);
    const int next = ring_at(s.rank, 1, s.size);
    b.recv(ring_at(s.rank, -1, s.size), {Buffer::recv, taken * block}, s.recv.count);
    if (step == 0) {
      b.send(next, b.input(), input_count(b), b.input_unit());
      copy_own_block(b);
    } else {
      b.send(next, {Buffer::recv, given * block}, s.recv.count);
    }
    b.end_round();
  }
  if (s.size == 1) copy_own_block(b);
}

}  // namespace weft
