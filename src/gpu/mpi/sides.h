// Describes the send and receive buffers of a call: how many blocks each has, and how these lie in
// memory.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "transport/mpi/call.h"

namespace weft::gpu {

struct Group {
  int rank = 0, size = 1;
  // Numbers of neighbours to receive from and to send to, if the communicator has a topology.
  int sources = 0, targets = 0;
};

Group group_of(const Call& call);

// senders_blocks() returns the number of blocks that this rank sends, receivers_blocks() the number
// that it receives. There is one block for each peer.
int senders_blocks(const Call& call, const Group& group);
int receivers_blocks(const Call& call, const Group& group);

struct Side {
  const void* buffer;
  Numbers counts, displacements;
  MPI_Datatype type;
  // Datatype of each rank's block, if they differ (alltoallw); displacements are in bytes then.
  // nullptr if `type` holds for all blocks.
  const MPI_Datatype* types;
};

Side sending(const Call& call, const Group& group);
Side receiving(const Call& call, const Group& group);

struct Measures {
  std::int64_t size = 0, extent = 0;
  bool dense = false;
};

Measures measures_of(MPI_Datatype type);

// Returns whether the call writes to the receive buffer on this rank.
bool is_changed(const Call& call, const Group& group);

// Rounds a number of bytes up to the alignment that the second buffer in pinned memory needs.
inline std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 128;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace weft::gpu
