// PackedBlock: a block of a user's buffer that is copied to or from the node's shared memory in
// pieces. Pieces are counted in bytes, since two ranks may describe the same block by different
// datatypes. If a block has gaps and must be divided, it is packed into a temporary buffer.
#pragma once

#include "schedule/builder.h"

namespace weft {

class PackedBlock {
 public:
  PackedBlock(Builder& b, const Operand& block, bool is_cut)
      : b_(b), block_(block), bytes_(block), is_packed_(is_cut && !layout(block).plain) {
    const std::int64_t bytes = payload_bytes(b.shape(), block);
    if (is_packed_) bytes_.at = b.temp(bytes, Unit::byte);
    if (is_cut) bytes_ = {bytes_.at, bytes, Unit::byte};
  }

  void pack() {  // must be called before the first piece is used
    if (is_packed_) b_.copy(block_, bytes_);
  }
  void unpack() {  // must be called after the last piece has arrived
    if (is_packed_) b_.copy(bytes_, block_);
  }

  // Returns the piece of `length` bytes that begins `begin` bytes behind the block's beginning; the
  // whole block if it is not divided.
  Operand piece(std::int64_t begin, std::int64_t length) const {
    return bytes_.unit == Unit::byte ? Operand{bytes_.at + begin, length, Unit::byte} : bytes_;
  }
  void copy_to(Location shared, std::int64_t begin, std::int64_t length) {
    b_.copy(piece(begin, length), {shared, length, Unit::byte});
  }
  void copy_from(Location shared, std::int64_t begin, std::int64_t length) {
    b_.copy({shared, length, Unit::byte}, piece(begin, length));
  }

 private:
  const Layout& layout(const Operand& block) const { return layout_of(b_.shape(), block.unit); }

  Builder& b_;
  const Operand block_;
  // The block as contiguous bytes, in the user's or the temporary buffer, if it must be divided;
  // otherwise the block itself.
  Operand bytes_;
  const bool is_packed_;
};

}  // namespace weft
