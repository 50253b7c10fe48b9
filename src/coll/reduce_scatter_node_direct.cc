// Zero-copy reduce-scatter for ranks that can access each other's input: each rank reduces its
// block directly from all inputs, piece by piece. With p ranks and blocks of n bytes, each rank
// reduces (p - 1) n bytes; in place it also copies n. Li, Hoefler, Snir, NUMA-aware shared-memory
// collective communication for MPI, HPDC 2013
#include "coll/build_functions.h"
#include "coll/direct.h"
#include "coll/reduce_in_order.h"

namespace weft {

void reduce_scatter_node_direct(Builder& b) {
  const Shape& s = b.shape();
  const Operand own = outgoing(s, s.rank), result = incoming(s, s.rank);
  if (s.size == 1) return b.copy(own, result);
  if (*agreed_bytes(s) == 0) return;
  b.meet(Builder::Shows::input);
  // If the call is in place, the result would overwrite input that others may still read, so the
  // sum goes to a temporary buffer.
  const Location sum = s.in_place ? b.temp(result.count, Unit::recv) : result.at;
  const std::int64_t begin = own.at.offset - outgoing(s, 0).at.offset;
  in_pieces(s, 0, result.count, [&](auto offset, auto count) {
    const auto input = [&](int rank) { return b.input_of(rank) + (begin + offset); };
    reduce_in_order(b, s.size, input, sum + offset, count);
  });
  part_from_all(b);
  b.copy(sum, result.at, result.count);
}

}  // namespace weft
