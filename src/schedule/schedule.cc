// Computes where the data of a collective lie in the user's buffers, and which bytes an operand
// accesses, from the call's arguments alone.
#include "schedule/schedule.h"

#include <algorithm>
#include <utility>

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

bool scatters_a_reduction(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block;
}

int blocks_in_send(const Shape& shape) {
  const bool is_root = shape.rank == shape.root;
  switch (shape.kind) {
    case Kind::barrier:
    case Kind::bcast:
      return 0;
    case Kind::scatter:
    case Kind::scatterv:
      return is_root ? shape.size : 0;
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      return shape.in_place ? 0 : shape.size;
    case Kind::neighbor_alltoall:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      return static_cast<int>(shape.destinations.size());
    default:
      return shape.in_place ? 0 : 1;
  }
}

int blocks_in_recv(const Shape& shape) {
  const bool is_root = shape.rank == shape.root;
  switch (shape.kind) {
    case Kind::barrier:
      return 0;
    case Kind::gather:
    case Kind::gatherv:
      return is_root ? shape.size : 0;
    case Kind::scatter:
    case Kind::scatterv:
      return shape.in_place ? 0 : 1;
    case Kind::allgather:
    case Kind::allgatherv:
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return shape.size;
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      // In place, the receive buffer holds the input of all blocks; otherwise only the rank's own
      // block is input.
      return shape.in_place ? shape.size : 1;
    case Kind::reduce:
      return is_root ? 1 : 0;
    case Kind::exscan:
      return shape.rank > 0 || shape.in_place ? 1 : 0;
    default:
      return is_neighborhood(shape.kind) ? static_cast<int>(shape.sources.size()) : 1;
  }
}

// Returns whether the block has no peer (MPI_PROC_NULL in a neighborhood collective), so that it
// stays unchanged.
bool is_left_alone(const std::vector<int>& peers, int block) {
  return !peers.empty() && peers[static_cast<std::size_t>(block)] < 0;
}

bool gives_one_block(Kind kind) {
  return kind == Kind::neighbor_allgather || kind == Kind::neighbor_allgatherv;
}

class Runs {
 public:
  explicit Runs(const Shape& shape) : shape_(shape) {}

  void add(const Operand& block) {
    if (payload_bytes(shape_, block) == 0) return;
    if (!runs_.empty() && continues(runs_.back(), block))
      runs_.back().count += block.count;
    else
      runs_.push_back(block);
  }
  std::vector<Operand> take() { return std::move(runs_); }

 private:
  bool continues(const Operand& run, const Operand& block) const {
    return run.unit == block.unit &&
           run.at + run.count * layout_of(shape_, run.unit).extent == block.at;
  }

  const Shape& shape_;
  std::vector<Operand> runs_;
};

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
      return regular_block(shape.recv, Buffer::recv, Unit::recv, index);
    case Kind::neighbor_allgather:
    case Kind::neighbor_alltoall:
      if (!shape.recv_blocks.empty()) return block_at(shape.recv_blocks, Buffer::recv, index);
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

const char* buffer_name(Buffer buffer) {
  constexpr const char* kNames[] = {"send", "recv", "temp", "node", "half a", "half b"};
  return kNames[static_cast<int>(buffer)];
}

Location in_node(const Schedule& schedule, const Location& at) {
  const Halves& halves = schedule.halves;
  if (at.buffer == Buffer::half_a) return {Buffer::node, halves.offset + at.offset};
  if (at.buffer == Buffer::half_b) return {Buffer::node, halves.offset + halves.stride + at.offset};
  return at;
}

std::vector<Operand> buffer_runs(const Shape& shape, Buffer buffer) {
  Runs runs(shape);
  if (buffer == Buffer::send) {
    for (int i = 0; i < blocks_in_send(shape); ++i) {
      if (gives_one_block(shape.kind) || !is_left_alone(shape.destinations, i))
        runs.add(outgoing(shape, i));
    }
  } else if (buffer == Buffer::recv) {
    const bool holds_input = shape.in_place && scatters_a_reduction(shape.kind);
    for (int i = 0; i < blocks_in_recv(shape); ++i) {
      if (is_left_alone(shape.sources, i)) continue;
      runs.add(holds_input ? outgoing(shape, i) : incoming(shape, i));
    }
  }
  return runs.take();
}

Operand given_by(const Step& step) {
  return step.kind == StepKind::recv ? Operand{} : step.first;
}

Operand got_by(const Step& step) {
  if (step.kind == StepKind::leaders) return step.second;
  return step.kind == StepKind::recv ? step.first : Operand{};
}

Operand result_of(const Step& step) {
  if (step.kind == StepKind::copy) return step.second;
  return {step.into, step.second.count, step.second.unit};
}

std::int64_t payload_bytes(const Shape& shape, const Operand& operand) {
  return operand.count * layout_of(shape, operand.unit).size;
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
