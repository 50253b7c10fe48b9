// Implements Accumulator: decides in which of two buffers the partial result of a reduction and the
// next received operand lie.
#include "coll/accumulator.h"

#include <algorithm>
#include <utility>

namespace weft {

Accumulator::Accumulator(Builder& builder, Location target, std::vector<Side> parts)
    : builder_(builder), target_(target), parts_(std::move(parts)), value_(builder.input()) {}

bool Accumulator::odd_moves_left() const {
  const auto after = parts_.begin() + static_cast<std::ptrdiff_t>(next_) + 1;
  return std::count(after, parts_.end(), Side::higher) % 2 != 0;
}

Location Accumulator::other(Location buffer) {
  if (buffer != target_) return target_;
  if (!has_spare_) spare_ = builder_.temp(builder_.shape().recv.count, Unit::recv);
  has_spare_ = true;
  return spare_;
}

void Accumulator::receive(int peer) {
  if (read_only()) {
    const Location lands = odd_moves_left() ? other(target_) : target_;
    inbox_ = parts_[next_] == Side::higher ? lands : other(lands);
  } else {
    inbox_ = other(value_);
  }
  builder_.recv(peer, inbox_, builder_.shape().recv.count);
}

void Accumulator::absorb() {
  const std::int64_t count = builder_.shape().recv.count;
  const bool higher = parts_[next_++] == Side::higher;
  if (!higher && read_only()) {
    const Location to = other(inbox_);
    builder_.copy(value_, to, count);
    value_ = to;
  }
  builder_.end_round();
  if (higher) {
    builder_.reduce(value_, inbox_, count);
    value_ = inbox_;
  } else {
    builder_.reduce(inbox_, value_, count);
  }
  builder_.end_round();
}

void Accumulator::finish() {
  builder_.copy(value_, target_, builder_.shape().recv.count);
  value_ = target_;
}

}  // namespace weft
