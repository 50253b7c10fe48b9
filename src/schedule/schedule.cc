// What can be said of an operand from the shape alone: its layout, and the bytes it touches.
#include "schedule/schedule.h"

#include <algorithm>

namespace weft {

const Layout& layout_of(const Shape& shape, Unit unit) {
  static constexpr Layout byte{};
  if (unit == Unit::byte) return byte;
  if (unit == Unit::send) return shape.send;
  if (unit == Unit::recv) return shape.recv;
  return shape
      .types[static_cast<std::size_t>(unit) - static_cast<std::size_t>(Unit::first_of_many)];
}

namespace {

Operand block_at(const std::vector<Block>& blocks, Buffer buffer, int index) {
  const Block& block = blocks[static_cast<std::size_t>(index)];
  return {{buffer, block.offset}, block.count, block.unit};
}

Operand regular_block(const Layout& layout, Buffer buffer, Unit unit, int index) {
  return {{buffer, index * layout.count * layout.extent}, layout.count, unit};
}

}  // namespace

Operand outgoing(const Shape& shape, int index) {
  switch (shape.kind) {
    case Kind::scatter:
      return regular_block(shape.send, Buffer::send, Unit::send, index);
    case Kind::gather:
    case Kind::gatherv:
    case Kind::allgather:
    case Kind::allgatherv:
      if (shape.in_place) return incoming(shape, shape.rank);
      return regular_block(shape.send, Buffer::send, Unit::send, 0);
    case Kind::neighbor_allgather:
    case Kind::neighbor_allgatherv:
      return regular_block(shape.send, Buffer::send, Unit::send, 0);
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
    case Kind::neighbor_alltoall:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      if (shape.in_place) return incoming(shape, index);
      [[fallthrough]];
    case Kind::scatterv:
      if (!shape.send_blocks.empty()) return block_at(shape.send_blocks, Buffer::send, index);
      return regular_block(shape.send, Buffer::send, Unit::send, index);
    case Kind::reduce_scatter: {
      Operand block = block_at(shape.recv_blocks, Buffer::recv, index);
      if (!shape.in_place) block.at.buffer = Buffer::send;
      return block;
    }
    case Kind::reduce_scatter_block:
      return regular_block(shape.recv, shape.in_place ? Buffer::recv : Buffer::send, Unit::recv,
                           index);
    default:
      return {{shape.in_place || shape.kind == Kind::bcast ? Buffer::recv : Buffer::send, 0},
              shape.recv.count,
              Unit::recv};
  }
}

Operand incoming(const Shape& shape, int index) {
  switch (shape.kind) {
    case Kind::gather:
    case Kind::allgather:
    case Kind::alltoall:
    case Kind::neighbor_allgather:
    case Kind::neighbor_alltoall:
      return regular_block(shape.recv, Buffer::recv, Unit::recv, index);
    case Kind::gatherv:
    case Kind::allgatherv:
    case Kind::alltoallv:
    case Kind::alltoallw:
    case Kind::neighbor_allgatherv:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      return block_at(shape.recv_blocks, Buffer::recv, index);
    case Kind::reduce_scatter:
      return {{Buffer::recv, 0},
              shape.recv_blocks[static_cast<std::size_t>(shape.rank)].count,
              Unit::recv};
    default:
      return {{Buffer::recv, 0}, shape.recv.count, Unit::recv};
  }
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
