// What can be said of an operand from the shape alone: its layout, and the bytes it touches.
#include "schedule/schedule.h"

#include <algorithm>

namespace weft {

const Layout& layout_of(const Shape& shape, Unit unit) {
  static constexpr Layout byte{};
  if (unit == Unit::byte) return byte;
  return unit == Unit::send ? shape.send : shape.recv;
}

std::int64_t buffer_elements(const Shape& shape, Buffer buffer) {
  if (buffer == Buffer::temp || shape.kind == Kind::barrier) return 0;
  const bool per_peer = shape.kind == Kind::alltoall;
  if (buffer == Buffer::send) {
    if (shape.in_place || shape.kind == Kind::bcast) return 0;
    return shape.send.count * (per_peer ? shape.size : 1);
  }
  if (shape.kind == Kind::reduce && shape.rank != shape.root) return 0;
  return shape.recv.count * (per_peer || shape.kind == Kind::allgather ? shape.size : 1);
}

Range touched_bytes(const Shape& shape, const Operand& operand) {
  if (operand.count == 0) return {operand.at.offset, operand.at.offset};
  const Layout& layout = layout_of(shape, operand.unit);
  const std::int64_t to_last = (operand.count - 1) * layout.extent;
  const std::int64_t first = operand.at.offset + layout.true_lb;
  return {first + std::min<std::int64_t>(0, to_last),
          first + std::max<std::int64_t>(0, to_last) + layout.true_extent};
}

}  // namespace weft
