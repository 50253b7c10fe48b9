// Zero-copy allreduce for ranks that can access each other's buffers: each rank reduces its share
// of the vector directly from all ranks' inputs, piece by piece. It writes each sum to all ranks'
// results while the sum is in cache. The reduction itself writes the first two of these results.
// With vectors of n bytes on p ranks, each rank reduces (p - 1) n / p bytes and copies (p - 2) n /
// p, in place (p - 1) n / p. Li, Hoefler, Snir, NUMA-aware shared-memory collective communication
// for MPI, HPDC 2013
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
  // A sum that replaces its operands may overwrite only the operand of the last rank, so with
  // MPI_IN_PLACE other ranks compute it in separate memory.
  const bool is_beside = s.in_place && s.rank != s.size - 1;
  const Location beside = is_beside ? b.temp(piece_count(s), Unit::recv) : Location{};
  const Blocks shares{s.recv.count, s.size};
  const auto sum_up = [&](std::int64_t offset, std::int64_t count) {
    const Location sum = is_beside ? beside : b.result_of(s.rank) + offset;
    const auto input = [&](int rank) { return b.input_of(rank) + offset; };
    reduce_in_order(b, s.size, input, sum, count);
    for (int i = 0; i < s.size; ++i)
      b.copy(sum, b.result_of(ring_at(s.rank, i, s.size)) + offset, count);
  };
  const std::int64_t begin = shares.begin(s.rank), end = shares.begin(s.rank + 1);
  const bool in_one_pass = s.size == 2 && !is_beside;
  if (in_one_pass && begin < end)
    sum_up(begin * s.recv.extent, end - begin);
  else
    in_pieces(s, begin, end, sum_up);
  part_from_all(b);
}

}  // namespace weft
