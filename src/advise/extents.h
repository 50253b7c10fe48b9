// Computes which bytes a collective call accesses on this rank.
#pragma once

#include <cstddef>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

struct Bytes {
  const char* begin = nullptr;
  std::size_t count = 0;  // number of bytes; SIZE_MAX: unknown
};

// The memory of one operation in flight. A range is empty if its size is unknown or other data lie
// in its gaps.
struct InFlight {
  Bytes read, written;  // bytes that the MPI library reads and writes
  // True if other ranks may read the written bytes through the kernel (CMA, XPMEM) while the
  // operation is in flight.
  bool passed_on = false;
};

// Returns the bytes spanned by `count` elements of a type.
Bytes elements(const void* buffer, std::int64_t count, MPI_Datatype type);
// Returns the bytes that the caller wrote for this call and MPI reads; none for MPI_IN_PLACE.
Bytes sent(const Call& call, const Communicator& comm);
// Returns all bytes that MPI reads, including the blocks of an in-place reduce-scatter.
Bytes read_by_mpi(const Call& call, const Communicator& comm);
Bytes received(const Call& call, const Communicator& comm);
// Returns whether the received blocks have, or may have, other data between them. Must only be
// called if received() is not empty.
bool has_gaps(const Call& call, const Communicator& comm);
// Returns the bytes of the elements; empty if there are gaps between them.
Bytes dense(const void* buffer, std::int64_t count, MPI_Datatype type);
// Returns the buffers that a collective reads and writes on this rank, neighbourhood collectives
// included.
InFlight in_flight(const Call& call, const Communicator& comm);
// Returns roughly the bytes that this rank sends and receives; they determine the size class.
std::uint64_t payload(const Call& call, const Communicator& comm);

}  // namespace weft::advise
