#include "gpu/mpi/staging.h"

#include <algorithm>
#include <utility>

#include "gpu/mpi/calls.h"
#include "gpu/mpi/chunks.h"
#include "gpu/mpi/sides.h"

namespace weft::gpu {
namespace {

// A range of bytes, counted from the address of the buffer.
struct Block {
  std::int64_t begin = 0, end = 0;
};

Result<std::vector<Block>> blocks_of(const Side& side, int count) {
  std::vector<Block> blocks;
  for (int i = 0; i < count; ++i) {
    const std::int64_t elements = side.counts.at(i);
    if (elements == 0) continue;
    const Measures type = measures_of(side.types ? side.types[i] : side.type);
    if (!type.dense) {
      return Error{"a data type with holes describes memory of the device", MPI_ERR_TYPE};
    }
    if (type.size == 0) continue;
    std::int64_t begin = i * elements * type.extent;
    if (side.displacements.is_array()) {
      begin = side.displacements.at(i) * (side.types ? 1 : type.extent);
    }
    blocks.push_back({begin, begin + elements * type.size});
  }
  return blocks;
}

// Returns the ranges with overlapping and adjacent ones merged.
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

// Copied: a device buffer, and the host memory that the MPI library gets in its place.
struct Copied {
  std::vector<Block> blocks;
  Address device = 0;
  // Address in host memory that the call uses in place of the device buffer's.
  std::byte* host = nullptr;

  void add(std::vector<Copy>* copies) const {
    for (const Block& one : blocks) {
      copies->push_back({device + static_cast<Address>(one.begin), host + one.begin,
                         static_cast<std::size_t>(one.end - one.begin)});
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

// Converts the counts or displacements of a call to ints. Returns an error if one is too large.
// is_used: whether MPI reads these numbers on this rank.
Result<bool> narrow(Numbers* numbers, int count, bool is_used, KeptArrays* kept) {
  const bool is_array = numbers->is_array();
  if (!is_used && is_array) return true;
  std::vector<int> ints;
  for (int i = 0; i < (is_array ? count : 1); ++i) {
    const std::int64_t one = numbers->at(i);
    ints.push_back(static_cast<int>(one));
    if (is_used && ints.back() != one) {
      return Error{"this MPI library has no calls with MPI_Count, which this collective needs",
                   MPI_ERR_COUNT};
    }
  }
  if (!is_array) {
    *numbers = Numbers(ints.front());
  } else if (count > 0) {
    *numbers = Numbers(std::as_const(ints).data());
    numbers->keep(count, *kept);
  }
  return true;
}

// If the MPI library has no functions with arguments of type MPI_Count, replaces the call's
// function by that with int counts. keep_arrays() must have been called before with the same
// numbers of entries.
Result<bool> make_known(Call* call, const Group& group, int sends, int recvs, KeptArrays* kept) {
  const CallId ints = with_ints(call->kind);
  if (call->form == ints || has_large_counts()) return true;
  call->form = ints;
  const bool sent = call->sendbuf != MPI_IN_PLACE && senders_blocks(*call, group) > 0;
  const bool received = call->recvbuf != MPI_IN_PLACE && receivers_blocks(*call, group) > 0;
  auto good = narrow(&call->sendcounts, sends, sent, kept);
  if (good) good = narrow(&call->recvcounts, recvs, received, kept);
  // The displacements of neighbor_alltoallw have type MPI_Aint in both functions.
  if (call->kind == Kind::neighbor_alltoallw) return good;
  if (good) good = narrow(&call->senddispls, sends, sent, kept);
  if (good) good = narrow(&call->recvdispls, recvs, received, kept);
  return good;
}

// Replaces the call's datatypes by duplicates. Arguments that MPI ignores are left alone, since
// they need not be datatypes. Datatypes that a user-defined operator gets are not replaced, since
// the operator may compare handles. keep_arrays() must have been called before.
void keep_types(Call* call, const Group& group, KeptTypes* kept) {
  if (reduces(call->kind)) return;
  const auto keep_side = [kept](const void* buffer, int blocks, MPI_Datatype* type,
                                const MPI_Datatype* types) {
    if (blocks == 0 || buffer == MPI_IN_PLACE) return;
    if (!types) *type = kept->keep(*type);
    for (int i = 0; types && i < blocks; ++i) {
      // The array belongs to Weft, so it may be changed.
      auto& one = const_cast<MPI_Datatype&>(types[i]);
      one = kept->keep(one);
    }
  };
  keep_side(call->sendbuf, senders_blocks(*call, group), &call->sendtype, call->sendtypes);
  keep_side(call->recvbuf, receivers_blocks(*call, group), &call->recvtype, call->recvtypes);
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

namespace {

// Prepares the call as a single chunk (staging.h). If a buffer has gaps between its blocks, only
// the blocks are copied.
Result<Staged> stage_whole(const Call& given, const Group& group, Context* context, bool copies) {
  Call call = given;
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

  Staged staged;
  const std::int64_t from_bytes = aligned(span_of(from.blocks));
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
  const bool neighborhood = is_neighborhood(call.kind);
  // Arguments that MPI ignores on this rank may be invalid, so they are not used.
  const bool sends = call.kind != Kind::scatterv || group.rank == call.root;
  const bool receives = call.kind != Kind::gatherv || group.rank == call.root;
  const int targets = neighborhood ? group.targets : group.size;
  const int sources = neighborhood ? group.sources : group.size;
  const int sent = sends && given.sendbuf != MPI_IN_PLACE ? targets : 0;
  const int received = receives ? sources : 0;
  keep_arrays(&call, sent, received, &staged.arrays);
  const auto known = make_known(&call, group, sent, received, &staged.arrays);
  if (!known) {
    context->give_back({}, staged.pinned, nullptr);
    return known.error();
  }
  keep_types(&call, group, &staged.types);

  Chunk chunk;
  from.add(&chunk.in);
  // The receive buffer is copied to the host first if it holds input, or a block that stays
  // unchanged, such as that of a missing neighbour at the end of a line.
  if (in_place || bcast_root || is_neighborhood(call.kind)) to.add(&chunk.in);
  if (is_changed(call, group)) to.add(&chunk.out);
  staged.chunks.push_back(std::move(chunk));
  staged.by_processor.chunks.emplace_back();
  staged.calls.push_back(call);
  return staged;
}

}  // namespace

Result<Staged> stage(const Call& call, Context* context, bool copies) {
  const Group group = group_of(call);
  const auto division = copies ? division_of(call, group) : std::nullopt;
  if (division) return stage_in_chunks(call, group, *division, context);
  return stage_whole(call, group, context, copies);
}

}  // namespace weft::gpu
