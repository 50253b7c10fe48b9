// Zero-copy reduce for ranks that can access each other's buffers: each rank reduces its share of
// the vector directly from all ranks' inputs, piece by piece, and the reduction writes to the
// root's result. With vectors of n bytes on p ranks, each rank reduces (p - 1) n / p bytes and
// copies nothing.
// Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include "coll/build_functions.h"
#include "coll/direct.h"
#include "coll/nothing_to_reduce.h"
#include "coll/reduce_in_order.h"
#include "patterns/blocks.h"

namespace weft {

void reduce_node_direct(Builder& b) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  const bool is_root = s.rank == s.root;
  b.meet(is_root ? Builder::Shows::both : Builder::Shows::input);
  // In place, the root's input lies where the result goes. Only the root knows that, so other ranks
  // keep sums in separate memory until they are complete.
  const bool is_beside = !is_root || (s.in_place && s.rank != s.size - 1);
  const Location beside = is_beside ? b.temp(piece_count(s), Unit::recv) : Location{};
  const Blocks shares{s.recv.count, s.size};
  in_pieces(s, shares.begin(s.rank), shares.begin(s.rank + 1), [&](auto offset, auto count) {
    const Location result = b.result_of(s.root) + offset;
    const Location sum = is_beside ? beside : result;
    const auto input = [&](int rank) { return b.input_of(rank) + offset; };
    reduce_in_order(b, s.size, input, sum, count);
    b.copy(sum, result, count);
  });
  part_from_all(b);
}

}  // namespace weft
