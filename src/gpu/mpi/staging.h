// A call on memory that the MPI library reaches: buffers of the device are replaced by pinned
// memory, and copies say what goes in and out. In chunks, where it is long (chunks.h).
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

// Duplicates of derived data types: MPI lets the caller free its own when the collective has been
// enqueued, while the agent makes the call later.
class KeptTypes {
 public:
  KeptTypes() = default;
  KeptTypes(KeptTypes&& other) noexcept : all_(std::exchange(other.all_, {})) {}
  KeptTypes& operator=(KeptTypes&&) = delete;
  ~KeptTypes();

  // Predefined types are not duplicated.
  MPI_Datatype keep(MPI_Datatype type);

 private:
  std::vector<MPI_Datatype> all_;
};

struct Staged {
  Staged() = default;
  Staged(Staged&&) = default;  // a copy's calls would point to the arrays of this one

  std::vector<Call> calls;  // one for each chunk
  std::vector<Chunk> chunks;
  std::size_t buffers = 0;  // of Runtime::add
  ByProcessor by_processor;
  KeptArrays arrays;  // of the calls
  KeptTypes types;    // of the calls
  Pinned pinned;
};

// copies: the MPI library cannot reach device memory, on any rank.
Result<Staged> stage(const Call& call, Context* context, bool copies);

}  // namespace weft::gpu
