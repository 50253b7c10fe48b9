#include "gpu/mpi/chunks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gpu/mpi/calls.h"

namespace weft::gpu {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 20;
// The least bytes of a block in one chunk, on average. Smaller messages would not transfer faster.
constexpr std::int64_t kLeastBytes = 16 << 10;
// A call with at most this many bytes gets pinned memory for all of its data, so that the stream
// makes the copies. The chunks of a longer call use kPinnedBuffers pinned buffers one after the
// other.
constexpr std::int64_t kMostInStream = 32 << 20;
constexpr std::int64_t kPinnedBuffers = 8;
// Chunks begin at multiples of this many bytes.
constexpr std::int64_t kGrain = 64;

// Returns whether each element of the result depends only on the same element of the operands.
bool is_elementwise(Kind kind) {
  return kind == Kind::bcast || kind == Kind::reduce || kind == Kind::allreduce ||
         kind == Kind::scan || kind == Kind::exscan;
}

// Returns the bytes of one block, if all blocks have equal size: the block that this rank sends to
// the root or to each rank, or that it receives.
std::int64_t block_bytes(const Call& call, const Group& group) {
  const bool at_root = group.rank == call.root;
  const bool by_sender =
      (call.kind == Kind::gather && !at_root) || (call.kind == Kind::scatter && at_root);
  const Numbers& counts = by_sender ? call.sendcounts : call.recvcounts;
  return counts.at(0) * measures_of(by_sender ? call.sendtype : call.recvtype).size;
}

// Span: some consecutive blocks of the send or the receive buffer.
struct Span {
  int first = 0, count = 0;
};

// CutSide: the send or the receive buffer of the call, and how it is divided into chunks.
struct CutSide {
  Side given;
  int first = 0, blocks = 0;  // which blocks of the division lie in this buffer
  Span read{}, changed{};
  // Which processor copies the blocks: that of the device, that of the host, or none if nothing
  // need be copied.
  enum class By { nobody, device, processor } by = By::nobody;
  std::vector<Address> at{};  // address of each block; empty if the call has no such buffer
};

// Finds the addresses of the buffer's blocks, and which processor copies them. Returns an error if
// the buffer cannot be used.
Result<bool> place(const Division& division, const Context& context, CutSide* side,
                   Staged* staged) {
  const Side& given = side->given;
  if (side->blocks == 0 || given.buffer == MPI_IN_PLACE) return true;
  const Measures type = measures_of(given.type);
  const bool of_device = is_of_device(context.driver(), given.buffer);
  if (of_device && !type.dense) {
    return Error{"a data type with holes describes memory of the device", MPI_ERR_TYPE};
  }
  auto* const buffer = static_cast<std::byte*>(const_cast<void*>(given.buffer));
  std::int64_t next = 0;
  for (int block = 0; block < side->blocks; ++block) {
    const std::int64_t elements =
        division.reduces ? division.of(side->first + block) : given.counts.at(block);
    const bool displaced = given.displacements.is_array();
    const std::int64_t begin = displaced ? given.displacements.at(block) * type.extent : next;
    next += elements * type.extent;
    std::byte* memory = buffer + begin;
    if (!type.dense && !division.reduces) {
      auto& packings = staged->by_processor.packings;
      packings.emplace_back(memory, elements, staged->types.keep(given.type), side->read.count > 0,
                            side->changed.count > 0);
      memory = packings.back().bytes();
    }
    side->at.push_back(reinterpret_cast<Address>(memory));
  }
  if (of_device) {
    side->by = CutSide::By::device;
  } else if (side->blocks > 1) {
    side->by = CutSide::By::processor;
  }
  return true;
}

// Cut: what one chunk transfers of the send or of the receive buffer. In pinned memory it has the
// chunk's range of each block, one after the other.
class Cut {
 public:
  Cut(const CutSide& side, const Division& division, std::int64_t chunk, std::byte* pinned)
      : side_(side), division_(division), chunk_(chunk), pinned_(pinned) {}

  const void* memory() const {
    if (side_.by != CutSide::By::nobody) return pinned_;
    return reinterpret_cast<const void*>(range_of(0));
  }
  std::int64_t elements(int block) const {
    const int which = side_.first + block;
    return division_.before(which, chunk_ + 1) - division_.before(which, chunk_);
  }
  // Returns how many elements the chunk has of all blocks before `block` together.
  std::int64_t elements_before(int block) const {
    if (division_.alike()) return block * elements(0);
    std::int64_t sum = 0;
    for (int other = 0; other < block; ++other) sum += elements(other);
    return sum;
  }
  std::int64_t bytes() const {
    const bool copied = side_.by != CutSide::By::nobody;
    return copied ? elements_before(side_.blocks) * division_.extent : 0;
  }
  void add(const Span& rows, CutSide::By by, std::vector<Copy>* copies) const {
    if (side_.by != by || side_.at.empty() || rows.count == 0) return;
    const bool at_once = by == CutSide::By::device && division_.alike() && rows.count > 1;
    std::byte* to = pinned_ + elements_before(rows.first) * division_.extent;
    for (int row = rows.first; row < rows.first + rows.count; ++row) {
      Copy one{range_of(row), to, static_cast<std::size_t>(elements(row) * division_.extent)};
      to += one.bytes;
      if (at_once) {
        one.rows = static_cast<std::size_t>(rows.count);
        one.pitch = side_.at[1] - side_.at[0];
      }
      if (one.bytes > 0) copies->push_back(one);
      if (at_once) break;
    }
  }

 private:
  Address range_of(int block) const {
    const std::int64_t begin = division_.before(side_.first + block, chunk_) * division_.extent;
    return side_.at[static_cast<std::size_t>(block)] + static_cast<Address>(begin);
  }

  const CutSide& side_;
  const Division& division_;
  const std::int64_t chunk_;
  std::byte* const pinned_;
};

bool reduces_blocks(Kind kind) {
  return kind == Kind::reduce_scatter_block || kind == Kind::reduce_scatter;
}

CutSide sending_side(const Call& call, const Group& group) {
  CutSide side{sending(call, group)};
  side.blocks = reduces_blocks(call.kind) ? group.size : senders_blocks(call, group);
  if (call.kind == Kind::allgatherv) side.first = group.rank;
  side.read = {0, side.blocks};
  return side;
}

CutSide receiving_side(const Call& call, const Group& group) {
  CutSide side{receiving(call, group)};
  const bool in_place = call.sendbuf == MPI_IN_PLACE;
  side.blocks = receivers_blocks(call, group);
  if (is_changed(call, group)) side.changed = {0, side.blocks};
  if (call.kind == Kind::reduce_scatter) side.first = group.rank;
  if (in_place && call.kind == Kind::reduce_scatter_block) side.blocks = group.size;
  const bool has_own_block =
      call.kind == Kind::gather || call.kind == Kind::allgather || call.kind == Kind::allgatherv;
  if (in_place && has_own_block) {
    side.read = {group.rank, 1};
  } else if (in_place || (call.kind == Kind::bcast && group.rank == call.root)) {
    side.read = {0, side.blocks};
  }
  return side;
}

// Sets the sizes of the blocks in *made. Returns false if not all ranks know these sizes, or if the
// call cannot be divided.
bool measure_blocks(const Call& call, const Group& group, Division* made) {
  // In a reduction all ranks use the same datatype.
  if (reduces(call.kind)) {
    const Measures type = measures_of(call.recvtype);
    made->type = call.recvtype;
    made->size = type.size, made->extent = type.extent;
    made->reduces = true;
    if (reduces_blocks(call.kind) && !type.dense) return false;
  }
  switch (call.kind) {
    case Kind::reduce:
    case Kind::allreduce:
    case Kind::scan:
    case Kind::exscan:
    case Kind::reduce_scatter_block:
      made->elements = {call.recvcounts.at(0)};
      return true;
    case Kind::bcast:
    case Kind::gather:
    case Kind::scatter:
    case Kind::allgather:
    case Kind::alltoall:
      made->elements = {block_bytes(call, group)};
      return true;
    case Kind::reduce_scatter:
      // An in-place reduce_scatter cannot be divided: the result of one chunk would overwrite data
      // that another chunk has yet to send.
      if (call.sendbuf == MPI_IN_PLACE) return false;
      [[fallthrough]];
    case Kind::allgatherv: {
      const std::int64_t size = made->reduces ? 1 : measures_of(call.recvtype).size;
      for (int rank = 0; rank < group.size; ++rank) {
        made->elements.push_back(call.recvcounts.at(rank) * size);
      }
      return true;
    }
    default:
      return false;
  }
}

// Returns the array of counts for the call of one chunk, or that of displacements if
// `displacements` is true.
Numbers kept(const Cut& cut, int blocks, bool displacements, Staged* staged) {
  std::vector<int> numbers;
  for (int block = 0; block < blocks; ++block) {
    const std::int64_t one = displacements ? cut.elements_before(block) : cut.elements(block);
    numbers.push_back(static_cast<int>(one));
  }
  Numbers made(std::as_const(numbers).data());
  made.keep(blocks, staged->arrays);
  return made;
}

}  // namespace

std::int64_t Division::before(int block, std::int64_t chunk) const {
  const std::int64_t all = of(block), grain = reduces ? 1 : kGrain;
  return chunk == chunks ? all : all * chunk / chunks / grain * grain;
}

std::optional<Division> division_of(const Call& call, const Group& group) {
  Division made{MPI_BYTE};
  if (!measure_blocks(call, group, &made)) return std::nullopt;
  const std::int64_t blocks = is_elementwise(call.kind) ? 1 : group.size;
  const auto& elements = made.elements;
  const std::int64_t sum = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
  const std::int64_t bytes = sum * made.size * (made.alike() ? blocks : 1);
  const std::int64_t of_chunk = std::max(kChunkBytes, kLeastBytes * blocks);
  made.chunks = std::min((bytes + of_chunk - 1) / of_chunk,
                         *std::max_element(elements.begin(), elements.end()));
  made.takes_turns = bytes > kMostInStream;
  if (made.chunks <= 1) return std::nullopt;
  return made;
}

Result<Staged> stage_in_chunks(const Call& call, const Group& group, const Division& division,
                               Context* context) {
  Staged staged;
  CutSide from = sending_side(call, group), to = receiving_side(call, group);
  for (CutSide* const one : {&from, &to}) {
    if (const auto placed = place(division, *context, one, &staged); !placed) {
      return placed.error();
    }
  }
  // Bytes of a pinned buffer for data from the user's buffer, and for data to it.
  std::int64_t from_bytes = 0, to_bytes = 0;
  for (std::int64_t chunk = 0; chunk < division.chunks; ++chunk) {
    from_bytes = std::max(from_bytes, aligned(Cut(from, division, chunk, nullptr).bytes()));
    to_bytes = std::max(to_bytes, aligned(Cut(to, division, chunk, nullptr).bytes()));
  }
  const std::int64_t buffers =
      division.takes_turns ? std::min(kPinnedBuffers, division.chunks) : division.chunks;
  if (division.takes_turns) staged.buffers = static_cast<std::size_t>(buffers);
  const auto pinned = context->pinned(static_cast<std::size_t>(buffers * (from_bytes + to_bytes)));
  if (!pinned) return pinned.error();
  staged.pinned = *pinned;

  for (std::int64_t chunk = 0; chunk < division.chunks; ++chunk) {
    std::byte* const buffer = pinned->memory + chunk % buffers * (from_bytes + to_bytes);
    const Cut sent(from, division, chunk, buffer),
        received(to, division, chunk, buffer + from_bytes);
    Call one = call;
    one.form = with_ints(call.kind);
    one.sendtype = one.recvtype = division.type;
    one.sendcounts = one.recvcounts = Numbers((from.blocks > 0 ? sent : received).elements(0));
    if (!division.alike() || call.recvcounts.is_array()) {
      const Cut& all = call.kind == Kind::allgatherv ? received : sent;
      one.recvcounts = kept(all, group.size, false, &staged);
      if (call.kind == Kind::allgatherv) {
        one.recvdispls = kept(received, group.size, true, &staged);
      }
    }
    if (!from.at.empty()) one.sendbuf = sent.memory();
    if (!to.at.empty()) one.recvbuf = const_cast<void*>(received.memory());
    staged.calls.push_back(one);
    const auto copies = [&](CutSide::By by) {
      Chunk made;
      sent.add(from.read, by, &made.in);
      received.add(to.read, by, &made.in);
      received.add(to.changed, by, &made.out);
      return made;
    };
    staged.chunks.push_back(copies(CutSide::By::device));
    staged.by_processor.chunks.push_back(copies(CutSide::By::processor));
  }
  return staged;
}

}  // namespace weft::gpu
