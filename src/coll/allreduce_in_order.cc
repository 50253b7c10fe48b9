// Allreduce and reduce in rank order: each rank reduces one block of all vectors and sends the sum
// to all ranks or to the root. This sends as many bytes as the ring, in two rounds of p - 1
// messages for p ranks. The result is bitwise the same however the ranks are placed on nodes.
// Hoefler, Lumsdaine, Rehm, SC07 (LibNBC, linear reduce-scatter)
#include "coll/blocks_in_order.h"
#include "coll/build_functions.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {
namespace {

class VectorBlocks {
 public:
  explicit VectorBlocks(const Builder& b)
      : blocks_{b.shape().recv.count, b.shape().size}, extent_(b.shape().recv.extent) {}
  Operand of(int rank, Location vector) const {
    return {vector + blocks_.begin(rank) * extent_, blocks_.length(rank), Unit::recv};
  }

 private:
  Blocks blocks_;
  std::int64_t extent_;
};

// Adds the steps that reduce this rank's block of the vector, and returns where the sum lies: in
// the receive buffer if `in_result` is true, otherwise in a temporary buffer.
Operand sum_of_own_block(Builder& b, const VectorBlocks& blocks, bool in_result) {
  const int rank = b.shape().rank;
  Operand sum = blocks.of(rank, {Buffer::recv, 0});
  if (!in_result) sum.at = b.temp(sum.count, Unit::recv);
  sum_blocks_in_order(
      b, [&](int peer) { return blocks.of(peer, b.input()); }, sum.at);
  return sum;
}

}  // namespace

void allreduce_in_rank_order(Builder& b) {
  const Shape& s = b.shape();
  const VectorBlocks blocks(b);
  const Operand result = blocks.of(s.rank, {Buffer::recv, 0});
  // The sum may lie in the receive buffer unless the call is in place, when that buffer holds the
  // input.
  const Operand sum = sum_of_own_block(b, blocks, !s.in_place);
  b.copy(sum, result);
  b.end_round();
  for (int step = 1; step < s.size; ++step) {
    const int from = ring_at(s.rank, -step, s.size);
    b.recv(from, blocks.of(from, {Buffer::recv, 0}));
  }
  for (int step = 1; step < s.size; ++step) b.send(ring_at(s.rank, step, s.size), result);
}

void reduce_in_rank_order(Builder& b) {
  const Shape& s = b.shape();
  const VectorBlocks blocks(b);
  const bool is_root = s.rank == s.root;
  const Operand sum = sum_of_own_block(b, blocks, is_root && !s.in_place);
  b.end_round();
  if (!is_root) return b.send(s.root, sum);
  b.copy(sum, blocks.of(s.rank, {Buffer::recv, 0}));
  for (int rank = 0; rank < s.size; ++rank)
    if (rank != s.root) b.recv(rank, blocks.of(rank, {Buffer::recv, 0}));
}

}  // namespace weft
