// Creates blocks and neighbours for weft-schedule.
#include "example.h"

#include <vector>

namespace weft {
namespace {

std::vector<Block> equal_blocks(const Layout& layout, std::size_t number, Unit unit) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < number; ++i)
    blocks.push_back(
        {layout.count, static_cast<std::int64_t>(i) * layout.count * layout.extent, unit});
  return blocks;
}

// Returns the ranks above, below, left and right; -1 beyond the edge.
std::vector<int> grid_neighbors(int rank, int size) {
  int columns = 1;
  for (int i = 1; i * i <= size; ++i)
    if (size % i == 0) columns = i;
  const int column = rank % columns;
  return {rank >= columns ? rank - columns : -1, rank + columns < size ? rank + columns : -1,
          column > 0 ? rank - 1 : -1, column + 1 < columns ? rank + 1 : -1};
}

void give_each_block_a_type(Shape& shape) {
  for (auto* blocks : {&shape.send_blocks, &shape.recv_blocks})
    for (Block& block : *blocks) {
      block.unit =
          static_cast<Unit>(static_cast<std::size_t>(Unit::first_of_many) + shape.types.size());
      shape.types.push_back(shape.recv);
    }
}

}  // namespace

Shape example_of(Shape shape) {
  const bool is_root = shape.rank == shape.root;
  const auto size = static_cast<std::size_t>(shape.size);
  if (is_neighborhood(shape.kind))
    shape.sources = shape.destinations = grid_neighbors(shape.rank, shape.size);
  switch (shape.kind) {
    case Kind::gatherv:
      if (is_root) shape.recv_blocks = equal_blocks(shape.recv, size, Unit::recv);
      break;
    case Kind::scatterv:
      if (is_root) shape.send_blocks = equal_blocks(shape.send, size, Unit::send);
      break;
    case Kind::alltoallv:
    case Kind::alltoallw:
      if (!shape.in_place) shape.send_blocks = equal_blocks(shape.send, size, Unit::send);
      [[fallthrough]];
    case Kind::allgatherv:
      shape.recv_blocks = equal_blocks(shape.recv, size, Unit::recv);
      break;
    case Kind::reduce_scatter:
      shape.recv_blocks = equal_blocks(shape.recv, size, Unit::recv);
      shape.send.count = shape.recv.count *= shape.size;
      break;
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      shape.send_blocks = equal_blocks(shape.send, shape.destinations.size(), Unit::send);
      [[fallthrough]];
    case Kind::neighbor_allgatherv:
      shape.recv_blocks = equal_blocks(shape.recv, shape.sources.size(), Unit::recv);
      break;
    default:
      break;
  }
  const bool many = shape.kind == Kind::alltoallw || shape.kind == Kind::neighbor_alltoallw;
  if (many) give_each_block_a_type(shape);
  return shape;
}

}  // namespace weft
