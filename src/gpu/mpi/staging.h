// Prepares a call so that the MPI library can carry it out: pinned memory replaces device buffers,
// and copies transfer the data. Long calls are divided into chunks (chunks.h).
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

// KeptTypes: duplicates of derived datatypes for the agent, which calls MPI later. The application
// may free its own datatypes as soon as the collective was enqueued.
class KeptTypes {
 public:
  KeptTypes() = default;
  KeptTypes(KeptTypes&& other) noexcept : all_(std::exchange(other.all_, {})) {}
  KeptTypes& operator=(KeptTypes&&) = delete;
  ~KeptTypes();

  // Returns a duplicate of the datatype, which this object frees. A predefined datatype is returned
  // itself.
  MPI_Datatype keep(MPI_Datatype type);

 private:
  std::vector<MPI_Datatype> all_;
};

struct Staged {
  Staged() = default;
  Staged(Staged&&) = default;  // can only be moved, since the calls point into `arrays`

  std::vector<Call> calls;  // calls for the MPI library, one per chunk
  std::vector<Chunk> chunks;
  // Number of pinned buffers that chunks use one after the other; 0 if each chunk has its own.
  std::size_t buffers = 0;
  ByProcessor by_processor;
  KeptArrays arrays;  // counts and displacements to which the calls point
  KeptTypes types;    // datatypes that the calls use
  Pinned pinned;
};

// Prepares a call for the MPI library. copies: whether data must be copied to host memory, because
// the library does not accept device memory.
Result<Staged> stage(const Call& call, Context* context, bool copies);

}  // namespace weft::gpu
