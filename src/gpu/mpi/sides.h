// Describes a buffer of a call: how many blocks it has, and how they lie.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "transport/mpi/call.h"

namespace weft::gpu {

struct Group {
  int rank = 0, size = 1;
  int sources = 0, targets = 0;  // of a neighbourhood
};

Group group_of(const Call& call);

// Return the number of ranks to which this rank sends, or from which it receives, a block each.
int senders_blocks(const Call& call, const Group& group);
int receivers_blocks(const Call& call, const Group& group);

struct Side {
  const void* buffer;
  Numbers counts, displacements;
  MPI_Datatype type;
  const MPI_Datatype* types;  // one for each rank; displacements are then bytes
};

Side sending(const Call& call, const Group& group);
Side receiving(const Call& call, const Group& group);

struct Measures {
  std::int64_t size = 0, extent = 0;
  bool dense = false;
};

Measures measures_of(MPI_Datatype type);

// Returns whether the call changes the receive buffer on this rank.
bool is_changed(const Call& call, const Group& group);

// Rounds up to the alignment at which the second buffer begins in pinned memory.
inline std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 128;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace weft::gpu
