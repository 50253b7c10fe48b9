// Implements the reduce-scatter by recursive halving. If the input does not lie where the sum will
// be, the first part is received at the place of the sum. Then nothing is copied, and the temporary
// receive buffer needs only a quarter of the vector.
#include "coll/recursive_halving.h"

#include <utility>

namespace weft {

RecursiveHalving::RecursiveHalving(Builder& builder, const Fold& fold,
                                   std::vector<std::int64_t> borders, std::optional<Location> sum)
    : b_(builder),
      fold_(fold),
      position_(fold.position(builder.shape().rank)),
      borders_(std::move(borders)),
      sum_(sum),
      value_(builder.input()) {}

std::int64_t RecursiveHalving::length(int first, int last) const {
  return borders_[static_cast<std::size_t>(last)] - borders_[static_cast<std::size_t>(first)];
}

Location RecursiveHalving::at(Location vector, int part) const {
  return vector + borders_[static_cast<std::size_t>(part)] * b_.extent(Unit::recv);
}

Location RecursiveHalving::vector_with(Location part_at, int part) const {
  return part_at + -borders_[static_cast<std::size_t>(part)] * b_.extent(Unit::recv);
}

Operand RecursiveHalving::parts(int first, int last) const {
  return {at(value_, first), length(first, last), Unit::recv};
}

template <class AlsoPost>
void RecursiveHalving::receive_and_reduce(int peer, int first, int last, AlsoPost also_post) {
  const std::int64_t count = length(first, last);
  if (!sum_) sum_ = vector_with(b_.temp(count, Unit::recv), first);
  const bool direct = value_ != *sum_;
  if (!direct && !inbox_) inbox_ = b_.temp(count, Unit::recv);
  b_.recv(peer, direct ? at(*sum_, first) : *inbox_, count);
  also_post();
  b_.end_round();
  b_.reduce(direct ? at(value_, first) : *inbox_, at(*sum_, first), count);
  b_.end_round();
  value_ = *sum_;
}

void RecursiveHalving::take_in_partner(int partner) {
  receive_and_reduce(partner, 0, fold_.power(), [] {});
}

void RecursiveHalving::reduce_scatter() {
  int low = 0;
  for (int distance = fold_.power() / 2; distance > 0; distance /= 2) {
    const int peer = fold_.rank_at(position_ ^ distance);
    const int middle = low + distance;
    const bool lower = (position_ & distance) == 0;
    const int keep = lower ? low : middle;
    const int give = lower ? middle : low;
    receive_and_reduce(peer, keep, keep + distance,
                       [&] { b_.send(peer, parts(give, give + distance)); });
    low = keep;
  }
}

}  // namespace weft
