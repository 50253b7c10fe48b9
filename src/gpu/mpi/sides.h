// Describes the send and receive buffers of a call: their numbers of blocks, and the layout of
// these.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "transport/mpi/call.h"

namespace weft::gpu {

struct Group {
  int rank = 0, size = 1;
  int sources = 0, targets = 0;  // numbers of neighbours, if the communicator has a topology
};

Group group_of(const Call& call);

// Return the number of blocks that this rank sends, or that it receives; there is one per peer.
int senders_blocks(const Call& call, const Group& group);
int receivers_blocks(const Call& call, const Group& group);

struct Side {
  const void* buffer;
  Numbers counts, displacements;
  MPI_Datatype type;
  // Datatype of each rank's block, in which case displacements are in bytes; nullptr if `type`
  // holds for all.
  const MPI_Datatype* types;
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

// Rounds bytes up to the alignment that the second buffer in pinned memory needs.
inline std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 128;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace weft::gpu
