// Implements PackedBcast: handles the data of a bcast as bytes, and packs and unpacks them only if
// the datatype has gaps.
#include "coll/packed_bcast.h"

namespace weft {

PackedBcast::PackedBcast(Builder& builder) : builder_(builder) {
  const Layout& layout = builder.shape().recv;
  elements_ = {{Buffer::recv, 0}, layout.count, Unit::recv};
  const bool as_is = layout.plain || builder.shape().size == 1;
  origin_ = as_is ? elements_.at : builder.temp(layout.bytes(), Unit::byte);
  bytes_ = {origin_, layout.bytes(), Unit::byte};
}

void PackedBcast::pack() {
  if (is_packed()) builder_.copy(elements_, bytes_);
  builder_.end_round();
}

void PackedBcast::unpack() {
  builder_.end_round();
  if (is_packed()) builder_.copy(bytes_, elements_);
}

}  // namespace weft
