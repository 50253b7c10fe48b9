// Reads the arguments of each kind of collective on each rank (MPI-4.1, chapter 6), and the layouts
// of datatypes.
#include "runtime/call/shape.h"

#include <array>
#include <cstdint>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/call/operator_check.h"

namespace weft {
namespace {

// Caches the layouts of predefined datatypes, which never change, so that the MPI library is asked
// only once per thread and type.
struct KnownType {
  MPI_Datatype type;
  Layout layout;
};
thread_local std::array<KnownType, 4> known_types{};
thread_local unsigned next_known = 0;

// A size in bytes that does not fit into an int. It stands for all such sizes, which Weft does not
// handle.
constexpr std::int64_t kBeyondInt = std::int64_t{INT32_MAX} + 1;

Layout ask_layout(MPI_Datatype type) {
  int size = 0;
  MPI_Aint lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  library_calls.Type_size(type, &size);
  library_calls.Type_get_extent(type, &lb, &extent);
  library_calls.Type_get_true_extent(type, &true_lb, &true_extent);
  int integers = 0, addresses = 0, datatypes = 0, combiner = 0;
  library_calls.Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
  const bool plain = combiner == MPI_COMBINER_NAMED && extent == size;
  const std::int64_t bytes = size == MPI_UNDEFINED ? kBeyondInt : size;
  const Layout layout{0, bytes, extent, true_lb, true_extent, plain};
  if (combiner == MPI_COMBINER_NAMED)
    known_types[next_known++ % known_types.size()] = {type, layout};
  return layout;
}

Layout layout_of(MPI_Datatype type, std::int64_t count) {
  for (const KnownType& known : known_types) {
    if (known.type != type || known.layout.size == 0) continue;
    Layout layout = known.layout;
    layout.count = count;
    return layout;
  }
  Layout layout = ask_layout(type);
  layout.count = count;
  return layout;
}

// Describes the send or receive arguments of a call on this rank. If they are not significant,
// there are no blocks.
struct Side {
  bool significant = false;
  int blocks = 1;  // length of the array of counts; 1 if there is a single count
};

struct Sides {
  bool in_place = false;
  Side send;
  Side recv;
};

int length(const std::vector<int>& neighbors) {
  return static_cast<int>(neighbors.size());
}

// Returns whether the send and receive buffers are the same. MPI forbids that. MPI libraries that
// accept it treat it as MPI_IN_PLACE, and so does Weft. Other ranks are not affected.
bool has_one_buffer(const Call& call, bool root) {
  const bool has_result = root || call.kind != Kind::reduce;
  return reduces(call.kind) && has_result && call.sendbuf == call.recvbuf;
}

Sides sides_of(const Call& call, const Communicator& c) {
  const bool root = c.rank == call.root;
  const bool in_place = call.sendbuf == MPI_IN_PLACE || has_one_buffer(call, root);
  switch (call.kind) {
    case Kind::barrier:
      return {};
    case Kind::bcast:
      return {false, {}, {true}};
    case Kind::gather:
    case Kind::gatherv:
      return {in_place, {!in_place}, {root, c.size}};
    case Kind::allgather:
    case Kind::allgatherv:
      return {in_place, {!in_place}, {true, c.size}};
    case Kind::scatter:
    case Kind::scatterv: {
      const bool stays = root && call.recvbuf == MPI_IN_PLACE;
      return {stays, {root, c.size}, {!stays}};
    }
    case Kind::neighbor_allgather:
    case Kind::neighbor_allgatherv:
    case Kind::neighbor_alltoall:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      // If the neighbours are unknown, the lengths are set to 0, and the MPI library carries the
      // call out.
      if (!c.neighbors) return {in_place, {true, 0}, {true, 0}};
      return {in_place,
              {true, length(c.neighbors->destinations)},
              {true, length(c.neighbors->sources)}};
    default:
      return {in_place, {!in_place && !reduces(call.kind), c.size}, {true, c.size}};
  }
}

bool side_looks_right(const Side& side, const Numbers& counts, MPI_Datatype type,
                      const MPI_Datatype* types) {
  if (!side.significant) return true;
  const int numbers = counts.is_array() ? side.blocks : 1;
  for (int i = 0; i < numbers; ++i) {
    if (counts.at(i) < 0) return false;
    if (types && counts.at(i) > 0 && types[i] == handles.datatype_null) return false;
  }
  return types || type != handles.datatype_null;
}

// Changes the arguments of a buffer with a block for each rank, so that they describe only this
// rank's own block.
void leave_own(int rank, const Side& side, const void*& buffer, Numbers& counts,
               Numbers& displacements, MPI_Datatype type, const MPI_Datatype*& types) {
  if (!side.significant || side.blocks == 1) return;
  if (!counts.is_array())
    buffer = static_cast<const char*>(buffer) + layout_of(type, 0).extent * counts.at(0) * rank;
  counts.skip(rank);
  displacements.skip(rank);
  if (types) types += rank;
}

// Returns the address of this rank's own block. leave_own() must have been called before.
const char* place_of_own(const void* buffer, const Numbers& displacements, MPI_Datatype type,
                         const MPI_Datatype* types) {
  const std::int64_t unit = types ? 1 : layout_of(type, 0).extent;
  return static_cast<const char*>(buffer) + displacements.at(0) * unit;
}

bool may_be_in_place(const Call& call, const Communicator& communicator) {
  if (is_neighborhood(call.kind)) return false;
  const bool of_the_root = call.kind == Kind::gather || call.kind == Kind::gatherv ||
                           call.kind == Kind::scatter || call.kind == Kind::scatterv ||
                           call.kind == Kind::reduce;
  return !of_the_root || communicator.rank == call.root;
}

// Returns the blocks of a buffer with an array of counts. If the blocks also have different
// datatypes, adds the layouts of these to `types`.
std::vector<Block> blocks_of(int count, const Numbers& counts, const Numbers& displacements,
                             Unit unit, const Layout& layout, const MPI_Datatype* datatypes,
                             std::vector<Layout>& types) {
  std::vector<Block> blocks(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Block& block = blocks[static_cast<std::size_t>(i)];
    block.count = counts.at(i);
    block.offset = displacements.at(i) * (datatypes ? 1 : layout.extent);
    block.unit = unit;
    if (!datatypes) continue;
    block.unit = Unit{static_cast<int>(Unit::first_of_many) + static_cast<int>(types.size())};
    types.push_back(block.count > 0 ? layout_of(datatypes[i], block.count) : Layout{});
  }
  return blocks;
}

// Sets the offsets of the blocks of a reduce_scatter, which follow each other without gaps.
void follow_each_other(std::vector<Block>& blocks, std::int64_t extent) {
  std::int64_t offset = 0;
  for (Block& block : blocks) {
    block.offset = offset;
    offset += block.count * extent;
  }
}

void set_sides(const Call& call, const Sides& sides, Shape& shape) {
  if (sides.send.significant && !call.sendtypes)
    shape.send = layout_of(call.sendtype, call.sendcounts.is_array() ? 0 : call.sendcounts.at(0));
  if (sides.recv.significant && !call.recvtypes)
    shape.recv = layout_of(call.recvtype, call.recvcounts.is_array() ? 0 : call.recvcounts.at(0));
  if (sides.send.significant && call.sendcounts.is_array())
    shape.send_blocks = blocks_of(sides.send.blocks, call.sendcounts, call.senddispls, Unit::send,
                                  shape.send, call.sendtypes, shape.types);
  if (sides.recv.significant && call.recvcounts.is_array())
    shape.recv_blocks = blocks_of(sides.recv.blocks, call.recvcounts, call.recvdispls, Unit::recv,
                                  shape.recv, call.recvtypes, shape.types);
}

}  // namespace

bool arguments_look_right(const Call& call, const Communicator& communicator) {
  if (call.kind == Kind::barrier) return true;
  if (call.root < 0 || call.root >= communicator.size) return false;
  const Sides sides = sides_of(call, communicator);
  if (sides.in_place && !may_be_in_place(call, communicator)) return false;
  if (!side_looks_right(sides.send, call.sendcounts, call.sendtype, call.sendtypes) ||
      !side_looks_right(sides.recv, call.recvcounts, call.recvtype, call.recvtypes))
    return false;
  return !reduces(call.kind) || operator_fits(call.op, call.recvtype);
}

std::optional<Call> doubtful_alone(const Call& call, const Communicator& communicator) {
  const bool root = communicator.rank == call.root;
  Call own = call;
  own.root = 0;
  if (has_one_buffer(call, root)) {
    own.recvcounts.skip(communicator.rank);
    return own;
  }
  const Sides sides = sides_of(call, communicator);
  const bool both = sides.send.significant && sides.recv.significant;
  if (!both || sides.in_place || reduces(call.kind) || is_neighborhood(call.kind))
    return std::nullopt;
  const void* into = call.recvbuf;
  leave_own(communicator.rank, sides.send, own.sendbuf, own.sendcounts, own.senddispls,
            own.sendtype, own.sendtypes);
  leave_own(communicator.rank, sides.recv, into, own.recvcounts, own.recvdispls, own.recvtype,
            own.recvtypes);
  own.recvbuf = const_cast<void*>(into);
  const bool in_one_place =
      place_of_own(own.sendbuf, own.senddispls, own.sendtype, own.sendtypes) ==
      place_of_own(own.recvbuf, own.recvdispls, own.recvtype, own.recvtypes);
  return call.sendbuf == call.recvbuf || in_one_place ? std::optional(own) : std::nullopt;
}

std::size_t array_length(const Call& call, const Communicator& communicator, Direction direction) {
  const Sides sides = sides_of(call, communicator);
  const bool send = direction == Direction::send;
  const Side& side = send ? sides.send : sides.recv;
  const bool array = (send ? call.sendcounts : call.recvcounts).is_array();
  return side.significant && array ? static_cast<std::size_t>(side.blocks) : 0;
}

bool is_input(const Shape& shape, Buffer buffer) {
  if (buffer == Buffer::send) return true;
  return shape.in_place || (shape.kind == Kind::bcast && shape.rank == shape.root);
}

bool is_output(const Shape& shape, Buffer buffer) {
  return buffer == Buffer::recv && !(shape.kind == Kind::bcast && shape.rank == shape.root);
}

Shape shape_of(const Call& call, const Communicator& communicator) {
  Shape shape;
  shape.kind = call.kind;
  shape.rank = communicator.rank;
  shape.size = communicator.size;
  shape.root = call.root;
  shape.on_one_node = communicator.on_one_node();
  if (shape.on_one_node)
    shape.domains = communicator.domains;
  else
    shape.nodes = communicator.nodes;
  shape.has_leaders = communicator.leaders != nullptr;
  if (call.kind == Kind::barrier) return shape;
  const Sides sides = sides_of(call, communicator);
  shape.in_place = sides.in_place;
  set_sides(call, sides, shape);
  if (call.kind == Kind::reduce_scatter) {
    follow_each_other(shape.recv_blocks, shape.recv.extent);
    for (const Block& block : shape.recv_blocks) shape.recv.count += block.count;
  }
  const bool one_type = reduces(call.kind) || call.kind == Kind::bcast;
  if (one_type || (sides.in_place && !sides.send.significant)) shape.send = shape.recv;
  if (reduces(call.kind)) {
    int commutes = 0;
    library_calls.Op_commutative(call.op, &commutes);
    shape.commutative = commutes != 0;
  }
  if (is_neighborhood(call.kind)) {
    shape.sources = communicator.neighbors->sources;
    shape.destinations = communicator.neighbors->destinations;
  }
  return shape;
}

}  // namespace weft
