// Where the blocks of an alltoall lie.
#include "coll/alltoall_blocks.h"

namespace weft {

Operand AlltoallBlocks::outgoing(int peer, int blocks) const {
  const Unit unit = b_.input_unit();
  const Layout& layout = layout_of(b_.shape(), unit);
  return {b_.input() + peer * layout.count * layout.extent, blocks * layout.count, unit};
}

Operand AlltoallBlocks::incoming(int peer) const {
  const Layout& layout = b_.shape().recv;
  return {{Buffer::recv, peer * layout.count * layout.extent}, layout.count, Unit::recv};
}

void AlltoallBlocks::save_input() {
  const Shape& s = b_.shape();
  if (!s.in_place || s.size == 1) return;
  saved_ = b_.temp(s.size * bytes(), Unit::byte);
  b_.copy(outgoing(0, s.size), {saved_, s.size * bytes(), Unit::byte});
  b_.end_round();
}

void AlltoallBlocks::send_to(int peer) {
  if (b_.shape().in_place) return b_.send(peer, saved_ + peer * bytes(), bytes(), Unit::byte);
  const Operand block = outgoing(peer);
  b_.send(peer, block.at, block.count, block.unit);
}

void AlltoallBlocks::receive_from(int peer) {
  const Operand block = incoming(peer);
  b_.recv(peer, block.at, block.count);
}

void AlltoallBlocks::copy_own() {
  if (!b_.shape().in_place) b_.copy(outgoing(b_.shape().rank), incoming(b_.shape().rank));
}

}  // namespace weft
