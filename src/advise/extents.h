// Which bytes a collective call touches on this rank.
#pragma once

#include <cstddef>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

struct Bytes {
  const char* begin = nullptr;
  std::size_t count = 0;  // SIZE_MAX: not known
};

// `count` elements of a type.
Bytes elements(const void* buffer, std::int64_t count, MPI_Datatype type);
// What MPI reads where the caller wrote it for this call; sent in place: nothing.
Bytes sent(const Call& call, const Communicator& comm);
// What MPI reads, the blocks of a reduce-scatter in place too.
Bytes read_by_mpi(const Call& call, const Communicator& comm);
Bytes received(const Call& call, const Communicator& comm);
// Whether something else lies between the blocks of what is received, or may lie there; where
// `received` has some bytes.
bool has_gaps(const Call& call, const Communicator& comm);
// What travels from and to this rank, roughly: for the size class.
std::uint64_t payload(const Call& call, const Communicator& comm);

}  // namespace weft::advise
