// Exscan along the chain of ranks. What a rank receives from the rank below is its result; it adds
// its own input and sends the sum to the rank above. The algorithm keeps the order of operands.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC)
#include "coll/build_functions.h"
#include "patterns/ring.h"

namespace weft {

void exscan_chain(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t count = s.recv.count;
  const Location result{Buffer::recv, 0};
  const int previous = chain_previous(s.rank, 0, s.size);
  const int next = chain_next(s.rank, 0, s.size);
  Location sum = b.input();
  if (previous >= 0 && next >= 0) {
    sum = b.temp(count, Unit::recv);
    if (s.in_place) b.copy(b.input(), sum, count);
    b.end_round();
  }
  if (previous >= 0) {
    b.recv(previous, result, count);
    if (next >= 0 && !s.in_place) b.copy(b.input(), sum, count);
    b.end_round();
    if (next >= 0) b.reduce(result, sum, count);
    b.end_round();
  }
  if (next >= 0) b.send(next, sum, count);
}

}  // namespace weft
