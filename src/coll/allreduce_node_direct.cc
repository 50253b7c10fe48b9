// Allreduce without a copy, where all ranks see each other's buffers: each rank reduces its share
// of the vector right from all ranks' input, piece by piece, and writes the sum to all ranks'
// results while it is in its cache. Each rank reduces (p - 1) n / p bytes and copies as much, in
// place n. Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include "coll/build_functions.h"
#include "coll/direct.h"
#include "coll/nothing_to_reduce.h"
#include "coll/reduce_in_order.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {

void allreduce_node_direct(Builder& b) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  b.meet(Builder::Shows::both);
  // In place, the sum may be written over the last operand only.
  const bool is_beside = s.in_place && s.rank != s.size - 1;
  const Location beside = is_beside ? b.temp(piece_count(s), Unit::recv) : Location{};
  const Blocks shares{s.recv.count, s.size};
  in_pieces(s, shares.begin(s.rank), shares.begin(s.rank + 1), [&](auto offset, auto count) {
    const Location sum = is_beside ? beside : b.result_of(s.rank) + offset;
    const auto input = [&](int rank) { return b.input_of(rank) + offset; };
    reduce_in_order(b, s.size, input, sum, count);
    for (int i = 0; i < s.size; ++i)
      b.copy(sum, b.result_of(ring_at(s.rank, i, s.size)) + offset, count);
  });
  part_from_all(b);
}

}  // namespace weft
