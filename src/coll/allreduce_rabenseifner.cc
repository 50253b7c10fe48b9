// Rabenseifner's allreduce: reduce-scatter by recursive halving, allgather by recursive doubling;
// the ring's bytes in 2 log2(p) rounds.
// Ranks beyond a power of two give their data to a neighbour first and get the result at the end.
// Rabenseifner, ICCS 2004
#include <algorithm>

#include "coll/build_functions.h"
#include "patterns/blocks.h"
#include "patterns/doubling.h"

namespace weft {
namespace {

class Halving {
 public:
  Halving(Builder& builder, const Fold& fold)
      : b_(builder),
        fold_(fold),
        position_(fold.position(builder.shape().rank)),
        blocks_{builder.shape().recv.count, fold.power()},
        value_(builder.input().buffer),
        high_(fold.power()) {}

  void take_in_partner(int partner) {
    receive_and_reduce(partner, 0, high_, [] {});
  }

  void reduce_scatter() {
    for (int distance = fold_.power() / 2; distance > 0; distance /= 2) {
      const int peer = fold_.rank_at(position_ ^ distance);
      const int middle = low_ + distance;
      const bool lower = (position_ & distance) == 0;
      const int keep = lower ? low_ : middle;
      const int give = lower ? middle : low_;
      receive_and_reduce(peer, keep, keep + distance, [&] {
        b_.send(peer, at(value_, give), blocks_.length(give, give + distance));
      });
      low_ = keep;
      high_ = keep + distance;
    }
  }

  void allgather() {
    for (int distance = 1; distance < fold_.power(); distance *= 2) {
      const int peer = fold_.rank_at(position_ ^ distance);
      const int other = low_ ^ distance;
      b_.recv(peer, at(Buffer::recv, other), blocks_.length(other, other + distance));
      b_.send(peer, at(Buffer::recv, low_), blocks_.length(low_, high_));
      b_.end_round();
      low_ = std::min(low_, other);
      high_ = low_ + 2 * distance;
    }
  }

 private:
  // The first part is received where it belongs if the own one still lies in the send buffer.
  template <class AlsoPost>
  void receive_and_reduce(int peer, int from, int to, AlsoPost also_post) {
    const bool direct = value_ == Buffer::send;
    const std::int64_t count = blocks_.length(from, to);
    if (!direct && !has_inbox_) {
      inbox_ = b_.temp(count, Unit::recv);
      has_inbox_ = true;
    }
    b_.recv(peer, direct ? at(Buffer::recv, from) : inbox_, count);
    also_post();
    b_.end_round();
    if (direct)
      b_.reduce(at(Buffer::send, from), at(Buffer::recv, from), count);
    else
      b_.reduce(inbox_, at(Buffer::recv, from), count);
    b_.end_round();
    value_ = Buffer::recv;
  }

  Location at(Buffer buffer, int block) const {
    return {buffer, blocks_.begin(block) * b_.extent(Unit::recv)};
  }

  Builder& b_;
  const Fold& fold_;
  int position_;
  Blocks blocks_;
  Buffer value_;
  int low_ = 0;
  int high_;
  Location inbox_;
  bool has_inbox_ = false;
};

}  // namespace

void allreduce_rabenseifner(Builder& b) {
  const Shape& s = b.shape();
  const std::int64_t count = s.recv.count;
  const Location result{Buffer::recv, 0};
  if (s.size == 1) return b.copy(b.input(), result, count);
  const Fold fold(s.size);
  const int partner = fold.partner(s.rank);
  if (fold.position(s.rank) < 0) {
    b.send(partner, b.input(), count);
    b.end_round();
    b.recv(partner, result, count);
    return;
  }
  Halving halving(b, fold);
  if (partner >= 0) halving.take_in_partner(partner);
  halving.reduce_scatter();
  halving.allgather();
  if (partner >= 0) b.send(partner, result, count);
}

}  // namespace weft
