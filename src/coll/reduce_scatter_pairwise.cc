// Pairwise reduce-scatter: p - 1 rounds for p ranks, in each of which every rank sends and receives
// one block, and reduces the block received in the previous round. Every byte is sent once. It
// suits long vectors and commutative operators.
// Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005
#include "coll/build_functions.h"
#include "patterns/ring.h"

namespace weft {

void reduce_scatter_pairwise(Builder& b) {
  const Shape& s = b.shape();
  const Operand own = outgoing(s, s.rank);
  const Operand result = incoming(s, s.rank);
  if (s.size == 1) return b.copy(own.at, result.at, result.count);
  // If the call is in place, the result would overwrite input that is still to be sent, so the sum
  // goes to a temporary buffer.
  const Location sum = s.in_place ? b.temp(result.count, Unit::recv) : result.at;
  const bool needs_inbox = s.size > 2;
  const Location inbox[] = {needs_inbox ? b.temp(result.count, Unit::recv) : sum,
                            s.size > 3 ? b.temp(result.count, Unit::recv) : sum};
  // Returns where the block of a step is received. The first one is received at the place of the
  // sum, to which this rank's own block is then added.
  const auto landing = [&](int step) { return step == 1 ? sum : inbox[step % 2]; };
  for (const int step : b.iterations(1, s.size + 1)) {
    const int to = ring_at(s.rank, step, s.size);
    if (step < s.size) {
      b.recv(ring_at(s.rank, -step, s.size), landing(step), result.count);
      b.send(to, outgoing(s, to));
    }
    if (step > 1) b.reduce(step == 2 ? own.at : landing(step - 1), sum, result.count);
    b.end_round();
  }
  b.copy(sum, result.at, result.count);
}

}  // namespace weft
