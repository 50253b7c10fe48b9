// Prepares a call on memory that the MPI library can access: device buffers are replaced by pinned
// memory, and copies transfer the data. Long calls are divided into chunks (chunks.h).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpu/context.h"
#include "gpu/mpi/by_processor.h"
#include "gpu/operation.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

// Keeps duplicates of derived datatypes for the agent, which calls MPI later: the caller may free
// its own as soon as the collective has been enqueued.
class KeptTypes {
 public:
  KeptTypes() = default;
  KeptTypes(KeptTypes&& other) noexcept : all_(std::exchange(other.all_, {})) {}
  KeptTypes& operator=(KeptTypes&&) = delete;
  ~KeptTypes();

  // Returns a duplicate of the datatype; a predefined datatype itself, since it is not duplicated.
  MPI_Datatype keep(MPI_Datatype type);

 private:
  std::vector<MPI_Datatype> all_;
};

struct Staged {
  Staged() = default;
  Staged(Staged&&) = default;  // not copyable, since the calls point into `arrays`

  std::vector<Call> calls;  // calls for the MPI library, one per chunk
  std::vector<Chunk> chunks;
  std::size_t buffers = 0;  // number of pinned buffers that chunks share (Runtime::add)
  ByProcessor by_processor;
  KeptArrays arrays;  // counts and displacements that the calls use
  KeptTypes types;    // datatypes that the calls use
  Pinned pinned;
};

// Prepares a call for the MPI library. copies: whether data must be copied, since the library
// cannot access device memory on any rank.
Result<Staged> stage(const Call& call, Context* context, bool copies);

}  // namespace weft::gpu
