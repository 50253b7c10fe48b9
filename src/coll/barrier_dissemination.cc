// Dissemination barrier: in round k every rank signals the rank 2^k ahead. There are ceil(log2 p)
// rounds for p ranks.
// Hensgen, Finkel, Manber, IJPP 17(1), 1988
#include "coll/build_functions.h"
#include "patterns/ring.h"

namespace weft {

void barrier_dissemination(Builder& b) {
  const Shape& s = b.shape();
  for (int distance = 1; distance < s.size; distance *= 2) {
    b.recv(ring_at(s.rank, -distance, s.size), {Buffer::temp, 0}, 0, Unit::byte);
    b.send(ring_at(s.rank, distance, s.size), {Buffer::temp, 0}, 0, Unit::byte);
    b.end_round();
  }
}

}  // namespace weft
