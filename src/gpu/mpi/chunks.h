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
  MPI_Datatype type;                  // datatype of the transferred data
  std::int64_t size = 1, extent = 1;  // bytes of an element
  bool reduces = false;
  bool takes_turns = false;  // true if chunks use a few pinned buffers one after the other
  std::vector<std::int64_t> elements{};  // elements of each block; a single number if all are equal
  std::int64_t chunks = 0;

  bool alike() const { return elements.size() == 1; }
  std::int64_t of(int block) const {
    return elements[alike() ? 0 : static_cast<std::size_t>(block)];
  }
  // Returns the number of elements of a block that precede this chunk's range.
  std::int64_t before(int block, std::int64_t chunk) const;
};

// Divides a call into chunks. Returns nothing if the call is short, or if only the root knows the
// lengths of all blocks.
std::optional<Division> division_of(const Call& call, const Group& group);

Result<Staged> stage_in_chunks(const Call& call, const Group& group, const Division& division,
                               Context* context);

}  // namespace weft::gpu
