// A long call in chunks of which one travels while the next is copied: each chunk is a range of
// every block that the call exchanges. How it is divided depends on facts alone that all ranks
// share: kind, bytes of the blocks, number of ranks. Where buffers lie, and which data types
// describe them, may differ.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/mpi/sides.h"
#include "gpu/mpi/staging.h"

namespace weft::gpu {

struct Division {
  MPI_Datatype type;                  // of what travels
  std::int64_t size = 1, extent = 1;  // of an element
  bool reduces = false;
  bool takes_turns = false;              // its chunks do, on a few buffers
  std::vector<std::int64_t> elements{};  // of each block; one number where all are alike
  std::int64_t chunks = 0;

  bool alike() const { return elements.size() == 1; }
  std::int64_t of(int block) const {
    return elements[alike() ? 0 : static_cast<std::size_t>(block)];
  }
  // Elements of a block that precede this chunk's.
  std::int64_t before(int block, std::int64_t chunk) const;
};

// Returns nothing if the call is short, or if only the root knows the lengths of all blocks.
std::optional<Division> division_of(const Call& call, const Group& group);

Result<Staged> stage_in_chunks(const Call& call, const Group& group, const Division& division,
                               Context* context);

}  // namespace weft::gpu
