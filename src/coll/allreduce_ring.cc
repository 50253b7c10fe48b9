// Ring allreduce: a reduce-scatter of p blocks for p ranks, then an allgather of these. Each rank
// sends 2 (p - 1) / p of the data, the minimum, to one neighbour only. Unless the call is in place,
// blocks are received at their final position and reduced with those of the send buffer, so nothing
// is copied and no temporary buffer is used.
// Patarasuk, Yuan, JPDC 69(2), 2009
#include "coll/build_functions.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {
namespace {

class Ring {
 public:
  explicit Ring(Builder& builder)
      : b_(builder),
        size_(builder.shape().size),
        rank_(builder.shape().rank),
        blocks_{builder.shape().recv.count, builder.shape().size} {}

  void reduce_scatter() {
    const bool in_place = b_.shape().in_place;
    const Location inbox = in_place ? b_.temp(blocks_.length(0), Unit::recv) : Location{};
    for (const int step : b_.iterations(0, size_ - 1)) {
      const int from = ring_at(rank_, -step, size_);
      const int to = ring_at(from, -1, size_);
      const Location received = in_place ? inbox : at(Buffer::recv, to);
      b_.recv(ring_at(rank_, -1, size_), received, blocks_.length(to));
      b_.send(ring_at(rank_, 1, size_), at(step == 0 ? b_.input().buffer : Buffer::recv, from),
              blocks_.length(from));
      b_.end_round();
      if (in_place)
        b_.reduce(inbox, at(Buffer::recv, to), blocks_.length(to));
      else
        b_.reduce(at(Buffer::send, to), received, blocks_.length(to));
      b_.end_round();
    }
  }

  void allgather() {
    for (const int step : b_.iterations(0, size_ - 1)) {
      const int from = ring_at(rank_, 1 - step, size_);
      const int to = ring_at(from, -1, size_);
      b_.recv(ring_at(rank_, -1, size_), at(Buffer::recv, to), blocks_.length(to));
      b_.send(ring_at(rank_, 1, size_), at(Buffer::recv, from), blocks_.length(from));
      b_.end_round();
    }
  }

 private:
  Location at(Buffer buffer, int block) const {
    return {buffer, blocks_.begin(block) * b_.extent(Unit::recv)};
  }

  Builder& b_;
  int size_;
  int rank_;
  Blocks blocks_;
};

}  // namespace

void allreduce_ring(Builder& b) {
  if (b.shape().size == 1) return b.copy(b.input(), {Buffer::recv, 0}, b.shape().recv.count);
  Ring ring(b);
  ring.reduce_scatter();
  ring.allgather();
}

}  // namespace weft
