// Allreduce without a copy, where all ranks see each other's buffers: each rank reduces its share
// of the vector right from all ranks' input, chunk by chunk, and writes the sum to all ranks'
// results while it is in its cache. Each rank reduces (p - 1) n / p bytes and copies as much, in
// place n. Li, Hoefler, Snir, NUMA-aware shared-memory collective communication for MPI, HPDC 2013
#include <algorithm>

#include "coll/build_functions.h"
#include "coll/nothing_to_reduce.h"
#include "coll/reduce_in_order.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {
namespace {

constexpr std::int64_t kChunk_bytes = 16 * 1024;  // operands and sum stay in the first cache

class Share {
 public:
  explicit Share(Builder& b)
      : b_(b),
        s_(b.shape()),
        most_(std::max<std::int64_t>(kChunk_bytes / s_.recv.extent, 1)),
        // The sum goes where only the last operand may lie.
        beside_(s_.in_place && s_.rank != s_.size - 1) {
    if (beside_) sum_ = b.temp(most_, Unit::recv);
  }

  void reduce(std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += most_)
      reduce_chunk(begin * s_.recv.extent, std::min(most_, end - begin));
  }

 private:
  void reduce_chunk(std::int64_t offset, std::int64_t count) {
    const Location result{Buffer::recv, offset};
    const Location sum = beside_ ? sum_ : result;
    reduce_in_order(
        b_, s_.size, [&](int rank) { return b_.at(rank, b_.input() + offset); }, sum, count);
    for (int i = 0; i < s_.size; ++i)
      b_.copy(sum, b_.at(ring_at(s_.rank, i, s_.size), result), count);
  }

  Builder& b_;
  const Shape& s_;
  const std::int64_t most_;  // elements of a chunk
  const bool beside_;
  Location sum_;
};

}  // namespace

void allreduce_node_direct(Builder& b) {
  const Shape& s = b.shape();
  if (nothing_to_reduce(b)) return;
  b.synchronizes();
  b.show(!s.in_place, true);
  for (int i = 0; i < s.size; ++i) b.find(ring_at(s.rank, i, s.size));
  const Blocks shares{s.recv.count, s.size};
  Share(b).reduce(shares.begin(s.rank), shares.begin(s.rank + 1));
  const std::uint32_t written = b.signal();
  for (int i = 1; i < s.size; ++i) b.wait(ring_at(s.rank, i, s.size), written);
}

}  // namespace weft
