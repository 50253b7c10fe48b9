// The local part of an allgather: this rank's own block.
#pragma once

#include "schedule/builder.h"

namespace weft {

// Puts the own block into the receive buffer. Reads the input only, so that a send of the input
// may be posted in the same round.
inline void copy_own_block(Builder& b) {
  const Shape& s = b.shape();
  const Location block{Buffer::recv, s.rank * s.recv.count * s.recv.extent};
  if (s.in_place) return;
  b.copy({b.input(), s.send.count, Unit::send}, {block, s.recv.count, Unit::recv});
}

// Elements of this rank's contribution, in Builder::input_unit().
inline std::int64_t input_count(const Builder& b) {
  return b.shape().in_place ? b.shape().recv.count : b.shape().send.count;
}

}  // namespace weft
