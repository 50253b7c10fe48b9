// Pipelined reduce along a chain of ranks to the root, in segments: while a rank receives a
// segment, it adds its operand to the previous one and sends the one before that. It suits long
// vectors and commutative operators.
// Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007 (pipeline)
#include <algorithm>

#include "coll/build_functions.h"
#include "coll/segments.h"
#include "patterns/blocks.h"
#include "patterns/ring.h"

namespace weft {
namespace {

// Builds the schedule. On the root, segments pass through the receive buffer; on other ranks,
// through three temporary buffers, one after the other.
class ReduceChain {
 public:
  explicit ReduceChain(Builder& builder)
      : b_(builder),
        blocks_{builder.shape().recv.count, segments(builder.shape())},
        // The chain leads from the last rank down to the root.
        from_(chain_next(builder.shape().rank, builder.shape().root, builder.shape().size)),
        to_(chain_previous(builder.shape().rank, builder.shape().root, builder.shape().size)) {}

  bool is_start() const { return from_ < 0; }

  void at_the_start() {
    for (int i = 0; i < blocks_.parts; ++i) {
      b_.send(to_, own(i), blocks_.length(i));
      b_.end_round();
    }
  }

  void in_between() {
    const int inboxes = std::min(blocks_.parts, 3);
    const std::int64_t stride = blocks_.length(0) * b_.extent(Unit::recv);
    const Location inbox = b_.temp(inboxes * blocks_.length(0), Unit::recv);
    const auto at = [&](int i) { return inbox + i % inboxes * stride; };
    for (int i = 0; i < blocks_.parts + 2; ++i) {
      if (exists(i)) b_.recv(from_, at(i), blocks_.length(i));
      if (exists(i - 1)) b_.reduce(own(i - 1), at(i - 1), blocks_.length(i - 1));
      if (exists(i - 2)) b_.send(to_, at(i - 2), blocks_.length(i - 2));
      b_.end_round();
    }
  }

  void at_the_root() {
    const bool in_place = b_.shape().in_place;
    const Location inbox[] = {in_place ? b_.temp(blocks_.length(0), Unit::recv) : Location{},
                              in_place ? b_.temp(blocks_.length(0), Unit::recv) : Location{}};
    const auto at = [&](int i) { return in_place ? inbox[i % 2] : result(i); };
    for (int i = 0; i < blocks_.parts + 1; ++i) {
      if (exists(i)) b_.recv(from_, at(i), blocks_.length(i));
      if (exists(i - 1))
        b_.reduce(in_place ? at(i - 1) : own(i - 1), result(i - 1), blocks_.length(i - 1));
      b_.end_round();
    }
  }

 private:
  bool exists(int segment) const { return segment >= 0 && segment < blocks_.parts; }
  Location own(int segment) const {
    return b_.input() + blocks_.begin(segment) * b_.extent(Unit::recv);
  }
  Location result(int segment) const {
    return {Buffer::recv, blocks_.begin(segment) * b_.extent(Unit::recv)};
  }

  Builder& b_;
  Blocks blocks_;
  int from_;
  int to_;
};

}  // namespace

void reduce_chain(Builder& b) {
  const Shape& s = b.shape();
  if (s.size == 1) return b.copy(b.input(), {Buffer::recv, 0}, s.recv.count);
  ReduceChain chain(b);
  if (s.rank == s.root)
    chain.at_the_root();
  else if (chain.is_start())
    chain.at_the_start();
  else
    chain.in_between();
}

}  // namespace weft
