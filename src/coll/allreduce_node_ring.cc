// Allreduce in the node's memory by copy-in with reduction: the vector is cut into a block for each
// rank, and each block goes round: one rank copies its part of it in, the next ones add theirs in
// place, the owner of the block last; then everyone copies all blocks out. Each rank moves and
// reduces its vector once, however many ranks there are, so it is the one for long vectors.
// Long vectors go segment by segment, so that what is shared stays in the caches.
// Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction, chunks)
#include <algorithm>

#include "coll/build_functions.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {
namespace {

class Segment {
 public:
  // Elements [begin, begin + count) of the vectors; in the node's memory from `shared` on.
  Segment(Builder& b, std::int64_t begin, std::int64_t count, Location shared)
      : b_(b), s_(b.shape()), blocks_{count, s_.size}, begin_(begin), shared_(shared) {}

  // Own part in, block after block, each right behind the rank before. Returns the signal that
  // tells of the block that this rank ends, the same on all ranks.
  std::uint32_t copy_in(std::uint32_t signals_before) {
    const int before = ring_at(s_.rank, -1, s_.size);
    for (int step = 0; step < s_.size; ++step) {
      const int block = ring_at(s_.rank, -1 - step, s_.size);
      const std::int64_t count = blocks_.length(block);
      if (step == 0) {
        b_.copy(input(block), shared(block), count);
      } else {
        b_.wait(before, signals_before + static_cast<std::uint32_t>(step));
        b_.reduce(input(block), shared(block), count);
      }
      b_.signal();
    }
    return signals_before + static_cast<std::uint32_t>(s_.size);
  }

  // The own block first: it is there.
  void copy_out(std::uint32_t ended) {
    for (int i = 0; i < s_.size; ++i) {
      const int block = ring_at(s_.rank, i, s_.size);
      if (i > 0) b_.wait(block, ended);
      b_.copy(shared(block), Location{Buffer::recv, offset(block)}, blocks_.length(block));
    }
  }

 private:
  std::int64_t offset(int block) const { return (begin_ + blocks_.begin(block)) * s_.recv.extent; }
  Location input(int block) const { return b_.input() + offset(block); }
  Location shared(int block) const { return shared_ + blocks_.begin(block) * s_.recv.extent; }

  Builder& b_;
  const Shape& s_;
  const Blocks blocks_;
  const std::int64_t begin_;
  const Location shared_;
};

}  // namespace

void allreduce_node_ring(Builder& b) {
  constexpr std::int64_t kBlock_bytes = 64 * 1024;
  const Shape& s = b.shape();
  if (s.size == 1) {
    b.copy(b.input(), {Buffer::recv, 0}, s.recv.count);
    return;
  }
  if (s.recv.count == 0) return;
  b.synchronizes();
  const std::int64_t most = std::max<std::int64_t>(kBlock_bytes / s.recv.extent, 1) * s.size;
  const std::int64_t length = std::min(most, s.recv.count);
  // Segments take turns in two places: when a rank begins one, it has waited for the end of the
  // one before on all ranks, and so for the copies out of the one before that.
  const Location places[] = {b.node(length * s.recv.extent), b.node(length * s.recv.extent)};
  std::uint32_t signals = 0;
  for (std::int64_t begin = 0, i = 0; begin < s.recv.count; begin += length, ++i) {
    Segment segment(b, begin, std::min(length, s.recv.count - begin), places[i % 2]);
    signals = segment.copy_in(signals);
    segment.copy_out(signals);
  }
}

}  // namespace weft
