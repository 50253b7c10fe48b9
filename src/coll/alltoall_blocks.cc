// Implements AlltoallBlocks: sends and receives the blocks of an alltoall. If the call is in place,
// it first packs all outgoing blocks except the rank's own into a temporary buffer.
#include "coll/alltoall_blocks.h"

#include "coll/packer.h"

namespace weft {

void AlltoallBlocks::save_input() {
  const Shape& s = b_.shape();
  if (!s.in_place || s.size == 1) return;
  std::int64_t bytes = 0;
  for (int peer = 0; peer < s.size; ++peer) {
    const std::int64_t of_block = peer == s.rank ? 0 : payload_bytes(s, outgoing(s, peer));
    saved_.push_back({{Buffer::temp, bytes}, of_block, Unit::byte});
    bytes += of_block;
  }
  const Location origin = b_.temp(bytes, Unit::byte);
  Packer blocks(b_, Packer::Way::pack, origin);
  for (int peer = 0; peer < s.size; ++peer) {
    Operand& saved = saved_[static_cast<std::size_t>(peer)];
    saved.at = origin + saved.at.offset;
    if (peer != s.rank) blocks.add(outgoing(s, peer));
  }
  blocks.finish();
  b_.end_round();
}

void AlltoallBlocks::send_to(int peer) {
  const Shape& s = b_.shape();
  b_.send(peer, s.in_place ? saved_[static_cast<std::size_t>(peer)] : outgoing(s, peer));
}

}  // namespace weft
