// Divides a long call into chunks, so that one chunk is transferred while the next one is copied.
// Each chunk is a range of every block that the call exchanges. The division depends only on facts
// that all ranks share: the kind, the bytes of the blocks and the number of ranks. Addresses and
// datatypes may differ between ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/mpi/sides.h"
#include "gpu/mpi/staging.h"

namespace weft::gpu {

struct Division {
  MPI_Datatype type;                  // datatype in which chunks are transferred
  std::int64_t size = 1, extent = 1;  // bytes of an element of this datatype, and its extent
  bool reduces = false;
  bool takes_turns = false;  // whether chunks use a few pinned buffers one after the other
  // Number of elements of each block; a single entry if all are equal.
  std::vector<std::int64_t> elements{};
  std::int64_t chunks = 0;

  bool alike() const { return elements.size() == 1; }
  std::int64_t of(int block) const {
    return elements[alike() ? 0 : static_cast<std::size_t>(block)];
  }
  // Returns how many elements of the block lie before the range that this chunk transfers.
  std::int64_t before(int block, std::int64_t chunk) const;
};

// Decides how a call is divided into chunks. Returns nothing if it is not divided: if it is short,
// or if not all ranks know the lengths of all blocks.
std::optional<Division> division_of(const Call& call, const Group& group);

Result<Staged> stage_in_chunks(const Call& call, const Group& group, const Division& division,
                               Context* context);

}  // namespace weft::gpu
