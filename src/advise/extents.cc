// Computes the memory of a call's blocks from its counts, displacements and datatypes.
#include "advise/extents.h"

#include <algorithm>
#include <climits>

#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft::advise {
namespace {

struct Span {
  std::int64_t low = INT64_MAX, high = INT64_MIN;

  void add(std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    low = std::min(low, from);
    high = std::max(high, to);
  }
};

void add_elements(Span& span, std::int64_t offset, std::int64_t count, MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  if (count <= 0 || library_calls.Type_get_extent(type, &low, &extent) != MPI_SUCCESS ||
      library_calls.Type_get_true_extent(type, &true_low, &true_extent) != MPI_SUCCESS)
    return;
  const std::int64_t last = (count - 1) * extent;
  span.add(offset + true_low + std::min<std::int64_t>(0, last),
           offset + true_low + std::max<std::int64_t>(0, last) + true_extent);
}

std::int64_t extent_of(MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0;
  return library_calls.Type_get_extent(type, &low, &extent) == MPI_SUCCESS ? extent : 0;
}

Bytes bytes_of(const void* buffer, const Span& span) {
  if (span.low > span.high) return {};
  return {static_cast<const char*>(buffer) + span.low,
          static_cast<std::size_t>(span.high - span.low)};
}

struct Side {
  const void* buffer;
  const Numbers& counts;
  MPI_Datatype type;
  const Numbers& displacements;
  const MPI_Datatype* types;
};

// Returns the address range of all ranks' blocks in one buffer. in_a_row: whether blocks without
// displacements lie one after the other.
Bytes blocks(const Side& side, int ranks, bool in_a_row = true) {
  Span span;
  if (side.types) {
    for (int i = 0; i < ranks; ++i)
      add_elements(span, side.displacements.at(i), side.counts.at(i), side.types[i]);
  } else if (side.displacements.is_array()) {
    // The type may be MPI_DATATYPE_NULL if there are no elements.
    std::int64_t extent = 0;
    for (int i = 0; i < ranks; ++i) {
      if (side.counts.at(i) <= 0) continue;
      if (extent == 0) extent = extent_of(side.type);
      add_elements(span, side.displacements.at(i) * extent, side.counts.at(i), side.type);
    }
  } else {
    std::int64_t count = side.counts.is_array() || !in_a_row ? 0 : side.counts.at(0) * ranks;
    for (int i = 0; side.counts.is_array() && i < ranks; ++i) count += side.counts.at(i);
    if (!in_a_row) count = side.counts.at(0);
    add_elements(span, 0, count, side.type);
  }
  return bytes_of(side.buffer, span);
}

bool in_place(const void* buffer) {
  return buffer == MPI_IN_PLACE;
}

// Says how many blocks the send or receive buffer of a call has: none, a single one, one per rank
// (all), or a number that is unknown here (neighbourhood collectives).
enum class Blocks : unsigned char { none, one, all, unknown };

Blocks sent_blocks(const Call& call, bool is_root) {
  switch (call.kind) {
    case Kind::barrier:
      return Blocks::none;
    case Kind::scatter:
    case Kind::scatterv:
      return is_root ? Blocks::all : Blocks::none;
    case Kind::bcast:
      return is_root ? Blocks::one : Blocks::none;
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return Blocks::all;
    default:
      return is_neighborhood(call.kind) ? Blocks::unknown : Blocks::one;
  }
}

Blocks received_blocks(const Call& call, bool is_root) {
  switch (call.kind) {
    case Kind::barrier:
      return Blocks::none;
    case Kind::gather:
    case Kind::gatherv:
      return is_root ? Blocks::all : Blocks::none;
    case Kind::reduce:
      return is_root ? Blocks::one : Blocks::none;
    case Kind::bcast:
      return is_root ? Blocks::none : Blocks::one;
    case Kind::allgather:
    case Kind::allgatherv:
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return Blocks::all;
    default:
      return is_neighborhood(call.kind) ? Blocks::unknown : Blocks::one;
  }
}

// Returns whether a side's blocks follow each other without gaps. A block without elements may be
// anywhere.
bool in_a_row(const Side& side, int blocks) {
  if (side.types || !dense(side.buffer, 1, side.type).count) return false;
  if (!side.displacements.is_array()) return true;
  bool first = true;
  std::int64_t next = 0;
  for (int i = 0; i < blocks; ++i) {
    if (side.counts.at(i) == 0) continue;
    if (!first && side.displacements.at(i) != next) return false;
    first = false;
    next = side.displacements.at(i) + side.counts.at(i);
  }
  return true;
}

bool scatters(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block;
}

Side sending(const Call& call) {
  // A reduce-scatter states the counts only on the receive side.
  if (scatters(call.kind))
    return {in_place(call.sendbuf) ? call.recvbuf : call.sendbuf, call.recvcounts, call.recvtype,
            call.senddispls, nullptr};
  return {call.sendbuf, call.sendcounts, call.sendtype, call.senddispls, call.sendtypes};
}

Side receiving(const Call& call) {
  return {call.recvbuf, call.recvcounts, call.recvtype, call.recvdispls, call.recvtypes};
}

// Returns the bytes of these blocks of a side; empty if there are gaps between them.
Bytes dense_blocks(const Side& side, int count) {
  const Bytes all = blocks(side, count);
  return all.count && in_a_row(side, count) ? all : Bytes{};
}

InFlight near_in_flight(const Call& call, const Communicator& comm) {
  if (comm.sources < 0) return {};
  const bool one = call.kind == Kind::neighbor_allgather || call.kind == Kind::neighbor_allgatherv;
  return {.read = dense_blocks(sending(call), one ? 1 : comm.targets),
          .written = dense_blocks(receiving(call), comm.sources),
          .passed_on = true};
}

Bytes side_bytes(Blocks which, const Side& side, int ranks) {
  if (which == Blocks::unknown) return {static_cast<const char*>(side.buffer), SIZE_MAX};
  if (which == Blocks::none || in_place(side.buffer)) return {};
  return blocks(side, ranks, which == Blocks::all);
}

}  // namespace

Bytes elements(const void* buffer, std::int64_t count, MPI_Datatype type) {
  Span span;
  add_elements(span, 0, count, type);
  return bytes_of(buffer, span);
}

Bytes sent(const Call& call, const Communicator& comm) {
  return in_place(call.sendbuf) ? Bytes{} : read_by_mpi(call, comm);
}

Bytes read_by_mpi(const Call& call, const Communicator& comm) {
  if (comm.inter) return {static_cast<const char*>(call.sendbuf), SIZE_MAX};
  const Side side = sending(call);
  if (scatters(call.kind)) return blocks(side, comm.size);
  return side_bytes(sent_blocks(call, comm.rank == call.root), side, comm.size);
}

Bytes received(const Call& call, const Communicator& comm) {
  if (comm.inter) return {static_cast<const char*>(call.recvbuf), SIZE_MAX};
  // Each rank receives only its own block, although the call has a count for each rank.
  if (call.kind == Kind::reduce_scatter)
    return elements(call.recvbuf, call.recvcounts.at(comm.rank), call.recvtype);
  return side_bytes(received_blocks(call, comm.rank == call.root), receiving(call), comm.size);
}

bool has_gaps(const Call& call, const Communicator& comm) {
  return !in_a_row(receiving(call), comm.size);
}

Bytes dense(const void* buffer, std::int64_t count, MPI_Datatype type) {
  const Bytes span = elements(buffer, count, type);
  int size = 0;
  if (!span.count || library_calls.Type_size(type, &size) != MPI_SUCCESS) return {};
  return span.count == static_cast<std::size_t>(count * size) ? span : Bytes{};
}

InFlight in_flight(const Call& call, const Communicator& comm) {
  if (comm.inter) return {};
  if (is_neighborhood(call.kind)) return near_in_flight(call, comm);
  InFlight found{read_by_mpi(call, comm), received(call, comm), true};
  if (found.written.count && has_gaps(call, comm)) found.written = {};
  if (found.read.count && !in_a_row(sending(call), comm.size)) found.read = {};
  return found;
}

std::uint64_t payload(const Call& call, const Communicator& comm) {
  const auto known = [](const Bytes& bytes) { return bytes.count == SIZE_MAX ? 0 : bytes.count; };
  return std::max(known(read_by_mpi(call, comm)), known(received(call, comm)));
}

}  // namespace weft::advise
