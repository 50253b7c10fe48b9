#include "gpu/mpi/staging.h"

#include <algorithm>
#include <limits>

namespace weft::gpu {
namespace {

constexpr std::int64_t kAlignment = 128;

// Bytes of a buffer, from its address.
struct Block {
  std::int64_t begin = 0, end = 0;
};

struct Group {
  int rank = 0, size = 1;
  int sources = 0, targets = 0;  // of a neighbourhood
};

// One element of the result depends on the same element of the operands.
bool is_elementwise(Kind kind) {
  return kind == Kind::bcast || kind == Kind::reduce || kind == Kind::allreduce ||
         kind == Kind::scan || kind == Kind::exscan;
}

void count_neighbors(MPI_Comm comm, Group* group) {
  int topology = MPI_UNDEFINED, weighted = 0;
  MPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    MPI_Cartdim_get(comm, &group->sources);
    group->sources *= 2;
    group->targets = group->sources;
  } else if (topology == MPI_GRAPH) {
    MPI_Graph_neighbors_count(comm, group->rank, &group->sources);
    group->targets = group->sources;
  } else if (topology == MPI_DIST_GRAPH) {
    MPI_Dist_graph_neighbors_count(comm, &group->sources, &group->targets, &weighted);
  }
}

Group group_of(const Call& call) {
  Group group;
  MPI_Comm_rank(call.comm, &group.rank);
  MPI_Comm_size(call.comm, &group.size);
  if (is_neighborhood(call.kind)) count_neighbors(call.comm, &group);
  return group;
}

// The ranks with each of which one block is exchanged.
int senders_blocks(const Call& call, const Group& group) {
  const bool at_root = group.rank == call.root;
  switch (call.kind) {
    case Kind::barrier:
    case Kind::bcast:  // its one buffer counts as received
      return 0;
    case Kind::scatter:
    case Kind::scatterv:
      return at_root ? group.size : 0;
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return group.size;
    case Kind::neighbor_alltoall:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      return group.targets;
    default:
      return 1;
  }
}

int receivers_blocks(const Call& call, const Group& group) {
  const bool at_root = group.rank == call.root;
  switch (call.kind) {
    case Kind::barrier:
      return 0;
    case Kind::reduce:
      return at_root ? 1 : 0;
    case Kind::gather:
    case Kind::gatherv:
      return at_root ? group.size : 0;
    case Kind::allgather:
    case Kind::allgatherv:
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return group.size;
    default:
      return is_neighborhood(call.kind) ? group.sources : 1;
  }
}

// One of a call's buffers.
struct Side {
  const void* buffer;
  Numbers counts, displacements;
  MPI_Datatype type;
  const MPI_Datatype* types;  // one for each rank; displacements are then bytes
};

Side sending(const Call& call, const Group& group) {
  Side side{call.sendbuf, call.sendcounts, call.senddispls, call.sendtype, call.sendtypes};
  if (call.kind == Kind::reduce_scatter) {
    std::int64_t sum = 0;
    for (int rank = 0; rank < group.size; ++rank) sum += call.recvcounts.at(rank);
    side.counts = sum;
  } else if (call.kind == Kind::reduce_scatter_block) {
    side.counts = call.recvcounts.at(0) * group.size;
  }
  if (call.kind == Kind::reduce_scatter || call.kind == Kind::reduce_scatter_block) {
    side.type = call.recvtype;
  }
  return side;
}

Side receiving(const Call& call, const Group& group) {
  Side side{call.recvbuf, call.recvcounts, call.recvdispls, call.recvtype, call.recvtypes};
  const bool in_place = call.sendbuf == MPI_IN_PLACE;
  if (call.kind == Kind::reduce_scatter) {
    side.counts = in_place ? sending(call, group).counts : Numbers(call.recvcounts.at(group.rank));
  } else if (call.kind == Kind::reduce_scatter_block && in_place) {
    side.counts = sending(call, group).counts;
  }
  return side;
}

struct Measures {
  std::int64_t size = 0, extent = 0;
  bool dense = false;
};

Measures measures_of(MPI_Datatype type) {
  MPI_Count size = 0, begin = 0, extent = 0, true_begin = 0, true_extent = 0;
  MPI_Type_size_x(type, &size);
  MPI_Type_get_extent_x(type, &begin, &extent);
  MPI_Type_get_true_extent_x(type, &true_begin, &true_extent);
  return {size, extent, size == extent && true_begin == 0 && true_extent == size};
}

Result<std::vector<Block>> blocks_of(const Side& side, int count) {
  std::vector<Block> blocks;
  for (int i = 0; i < count; ++i) {
    const std::int64_t elements = side.counts.at(i);
    if (elements == 0) continue;
    const Measures type = measures_of(side.types ? side.types[i] : side.type);
    if (!type.dense) {
      return Error{"a data type with holes describes memory of the device", MPI_ERR_TYPE};
    }
    std::int64_t begin = i * elements * type.extent;
    if (side.displacements.is_array()) {
      begin = side.displacements.at(i) * (side.types ? 1 : type.extent);
    }
    blocks.push_back({begin, begin + elements * type.size});
  }
  return blocks;
}

// Those that touch become one.
std::vector<Block> joined(std::vector<Block> blocks) {
  std::sort(blocks.begin(), blocks.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::vector<Block> all;
  for (const Block& one : blocks) {
    if (!all.empty() && one.begin <= all.back().end) {
      all.back().end = std::max(all.back().end, one.end);
    } else {
      all.push_back(one);
    }
  }
  return all;
}

std::int64_t span_of(const std::vector<Block>& blocks) {
  return blocks.empty() ? 0 : blocks.back().end - blocks.front().begin;
}

// A buffer of the device and what stands for it.
struct Copied {
  std::vector<Block> blocks;
  Address device = 0;
  std::byte* host = nullptr;  // of the buffer's address
  bool read = false, written = false;

  // What is copied of the bytes from `begin` to `end`.
  void add(std::int64_t begin, std::int64_t end, std::vector<Copy>* copies) const {
    for (const Block& one : blocks) {
      const std::int64_t first = std::max(begin, one.begin), last = std::min(end, one.end);
      if (first >= last) continue;
      copies->push_back({device + static_cast<Address>(first), host + first,
                         static_cast<std::size_t>(last - first)});
    }
  }
};

Result<Copied> copied(const Driver& driver, const Side& side, int blocks) {
  if (blocks == 0 || side.buffer == MPI_IN_PLACE || !is_of_device(driver, side.buffer)) {
    return Copied{};
  }
  auto found = blocks_of(side, blocks);
  if (!found) return found.error();
  Copied made;
  made.blocks = joined(std::move(*found));
  made.device = reinterpret_cast<Address>(side.buffer);
  return made;
}

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Arrays of the caller's, which may be gone when the call is made.
void keep_arrays(Call* call, const Group& group, Staged* staged) {
  const int sends = is_neighborhood(call->kind) ? group.targets : group.size;
  const int recvs = is_neighborhood(call->kind) ? group.sources : group.size;
  auto& arrays = staged->arrays;
  call->sendcounts.keep(sends, arrays);
  call->senddispls.keep(sends, arrays);
  call->recvcounts.keep(recvs, arrays);
  call->recvdispls.keep(recvs, arrays);
  const auto keep_all = [&](const MPI_Datatype*& types, int count) {
    if (!types) return;
    const auto* begin = reinterpret_cast<const std::byte*>(types);
    arrays.emplace_back(begin, begin + static_cast<std::size_t>(count) * sizeof(MPI_Datatype));
    types = reinterpret_cast<const MPI_Datatype*>(arrays.back().data());
  };
  keep_all(call->sendtypes, sends);
  keep_all(call->recvtypes, recvs);
}

// Behind keep_arrays. What MPI ignores need not be a data type. Those that an operator of the
// user's is handed stay the user's own: it may know them by their handles.
void keep_types(Call* call, const Group& group, KeptTypes* kept) {
  if (reduces(call->kind)) return;
  const auto keep_side = [kept](const void* buffer, int blocks, MPI_Datatype* type,
                                const MPI_Datatype* types) {
    if (blocks == 0 || buffer == MPI_IN_PLACE) return;
    if (!types) *type = kept->keep(*type);
    for (int i = 0; types && i < blocks; ++i) {
      auto& one = const_cast<MPI_Datatype&>(types[i]);  // in an array of Weft's
      one = kept->keep(one);
    }
  };
  keep_side(call->sendbuf, senders_blocks(*call, group), &call->sendtype, call->sendtypes);
  keep_side(call->recvbuf, receivers_blocks(*call, group), &call->recvtype, call->recvtypes);
}

const void* moved(const void* buffer, std::int64_t bytes) {
  return buffer == MPI_IN_PLACE ? buffer : static_cast<const std::byte*>(buffer) + bytes;
}

}  // namespace

KeptTypes::~KeptTypes() {
  for (MPI_Datatype& one : all_) MPI_Type_free(&one);
}

MPI_Datatype KeptTypes::keep(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return type;
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner == MPI_COMBINER_NAMED) return type;
  MPI_Datatype made = MPI_DATATYPE_NULL;
  if (MPI_Type_dup(type, &made) != MPI_SUCCESS) return type;
  all_.push_back(made);
  return made;
}

Result<Staged> stage(const Call& given, Context* context, bool copies) {
  int between_groups = 0;
  MPI_Comm_test_inter(given.comm, &between_groups);
  if (between_groups) {
    return Error{"a collective between two groups cannot be enqueued", MPI_ERR_COMM};
  }
  Call call = given;
  const Group group = group_of(call);
  const bool in_place = call.sendbuf == MPI_IN_PLACE || call.recvbuf == MPI_IN_PLACE;
  const bool bcast_root = call.kind == Kind::bcast && group.rank == call.root;

  Copied from, to;
  if (copies) {
    auto sent = copied(context->driver(), sending(call, group), senders_blocks(call, group));
    if (!sent) return sent.error();
    auto received =
        copied(context->driver(), receiving(call, group), receivers_blocks(call, group));
    if (!received) return received.error();
    from = std::move(*sent), to = std::move(*received);
  }
  from.read = true;
  // A neighbour that there is not, at the end of a line, leaves its block as it is.
  to.read = in_place || bcast_root || is_neighborhood(call.kind);
  to.written = !bcast_root && !(call.kind == Kind::exscan && group.rank == 0 && !in_place);

  Staged staged;
  const std::int64_t from_bytes = rounded(span_of(from.blocks));
  const auto pinned = context->pinned(static_cast<std::size_t>(from_bytes + span_of(to.blocks)));
  if (!pinned) return pinned.error();
  staged.pinned = *pinned;
  if (!from.blocks.empty()) {
    from.host = pinned->memory - from.blocks.front().begin;
    call.sendbuf = from.host;
  }
  if (!to.blocks.empty()) {
    to.host = pinned->memory + from_bytes - to.blocks.front().begin;
    call.recvbuf = to.host;
  }
  keep_arrays(&call, group, &staged);
  keep_types(&call, group, &staged.types);

  const auto add = [&](const Call& part_call, std::int64_t begin, std::int64_t end) {
    Part part;
    from.add(begin, end, &part.in);
    if (to.read) to.add(begin, end, &part.in);
    if (to.written) to.add(begin, end, &part.out);
    staged.parts.push_back(std::move(part));
    staged.calls.push_back(part_call);
  };
  Measures type;
  std::int64_t elements = 0;
  if (is_elementwise(call.kind)) {
    type = measures_of(call.recvtype);
    elements = call.recvcounts.at(0);
  }
  if (elements * type.size <= kPartBytes) {
    constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
    add(call, -kAll, kAll);
    return staged;
  }
  if (call.kind == Kind::bcast) {  // whose ranks may describe the same bytes in different ways
    if (!type.dense) {
      context->give_back({}, staged.pinned, nullptr);
      return Error{"a broadcast of more than 1 MiB needs a data type without holes", MPI_ERR_TYPE};
    }
    elements *= type.size, call.recvtype = MPI_BYTE;
    type.size = type.extent = 1;
  }
  const std::int64_t step = std::max<std::int64_t>(1, kPartBytes / type.size);
  for (std::int64_t first = 0; first < elements; first += step) {
    const std::int64_t count = std::min(step, elements - first);
    Call part = call;
    part.sendcounts = part.recvcounts = Numbers(count);
    part.sendtype = part.recvtype;
    part.sendbuf = moved(call.sendbuf, first * type.extent);
    part.recvbuf = const_cast<void*>(moved(call.recvbuf, first * type.extent));
    add(part, first * type.extent, (first + count) * type.extent);
  }
  return staged;
}

}  // namespace weft::gpu
