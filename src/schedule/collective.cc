// Computes from a call's arguments how many bytes of data the collective moves.
#include "schedule/collective.h"

#include <algorithm>

namespace weft {
namespace {

const Layout& layout_of_block(const Shape& shape, Unit unit) {
  if (unit < Unit::first_of_many) return unit == Unit::send ? shape.send : shape.recv;
  return shape
      .types[static_cast<std::size_t>(unit) - static_cast<std::size_t>(Unit::first_of_many)];
}

std::int64_t bytes_of(const Shape& shape, const std::vector<Block>& blocks) {
  std::int64_t bytes = 0;
  for (const Block& block : blocks) bytes += block.count * layout_of_block(shape, block.unit).size;
  return bytes;
}

}  // namespace

std::optional<std::int64_t> agreed_bytes(const Shape& shape) {
  const bool root = shape.rank == shape.root;
  switch (shape.kind) {
    case Kind::barrier:
      return 0;
    case Kind::bcast:
    case Kind::reduce:
    case Kind::allreduce:
    case Kind::scan:
    case Kind::exscan:
      return shape.recv.bytes();
    case Kind::gather:
      return shape.size * (root ? shape.recv : shape.send).bytes();
    case Kind::scatter:
      return shape.size * (root ? shape.send : shape.recv).bytes();
    case Kind::allgather:
    case Kind::alltoall:
    case Kind::reduce_scatter_block:
      return shape.size * shape.recv.bytes();
    case Kind::allgatherv:
    case Kind::reduce_scatter:
      return bytes_of(shape, shape.recv_blocks);
    default:
      return std::nullopt;
  }
}

std::int64_t local_bytes(const Shape& shape) {
  if (const auto agreed = agreed_bytes(shape)) return *agreed;
  const auto side = [&](const Layout& layout, const std::vector<Block>& blocks, std::size_t peers) {
    return blocks.empty() ? layout.bytes() * static_cast<std::int64_t>(peers)
                          : bytes_of(shape, blocks);
  };
  const bool regular = shape.kind == Kind::neighbor_alltoall;
  return std::max(
      side(shape.send, shape.send_blocks, regular ? shape.destinations.size() : 1),
      side(shape.recv, shape.recv_blocks, is_neighborhood(shape.kind) ? shape.sources.size() : 1));
}

bool shares_memory_with(const Shape& shape, int rank) {
  if (rank < 0 || rank >= shape.size) return false;
  return shape.on_one_node || (shape.nodes && shape.nodes->of(rank) == shape.nodes->of(shape.rank));
}

}  // namespace weft
