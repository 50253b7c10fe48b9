// Computes which bytes a collective call accesses on this rank.
#pragma once

#include <cstddef>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

struct Bytes {
  const char* begin = nullptr;
  std::size_t count = 0;  // number of bytes; SIZE_MAX if unknown
};

// The memory of one operation in flight. A range is empty if its size is unknown, or if there are
// gaps in it that may contain other data.
struct InFlight {
  Bytes read, written;  // bytes that MPI reads, and bytes that MPI writes
  // True if other ranks may read the bytes that MPI writes here (by CMA or XPMEM) while the
  // operation is in flight.
  bool passed_on = false;
};

// Returns the address range from the first to the last of `count` elements of the datatype.
Bytes elements(const void* buffer, std::int64_t count, MPI_Datatype type);
// Returns the bytes of this call's send buffer; an empty range for MPI_IN_PLACE.
Bytes sent(const Call& call, const Communicator& comm);
// Returns all bytes that MPI reads on this rank, including a receive buffer with MPI_IN_PLACE in a
// reduce-scatter.
Bytes read_by_mpi(const Call& call, const Communicator& comm);
Bytes received(const Call& call, const Communicator& comm);
// Returns whether other data may lie between the received blocks. It must not be called if
// received() is empty.
bool has_gaps(const Call& call, const Communicator& comm);
// Returns the bytes of the elements; empty if there are gaps between them.
Bytes dense(const void* buffer, std::int64_t count, MPI_Datatype type);
// Returns the buffers that a collective reads and writes on this rank, neighbourhood collectives
// included.
InFlight in_flight(const Call& call, const Communicator& comm);
// Returns roughly the bytes that this rank sends and receives; they determine the size class.
std::uint64_t payload(const Call& call, const Communicator& comm);

}  // namespace weft::advise
