// A call in parts, on memory that the MPI library reaches: buffers of the device are replaced by
// pinned memory, and copies say what goes in and out. How a call is cut depends on facts alone that
// are the same on all ranks; where its buffers lie need not be.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "gpu/context.h"
#include "gpu/operation.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

inline constexpr std::int64_t kPartBytes = 1 << 20;

struct Staged {
  Staged() = default;
  Staged(Staged&&) = default;  // a copy's calls would point to the arrays of this one

  std::vector<Call> calls;  // one for each part
  std::vector<Part> parts;
  std::vector<std::vector<std::byte>> arrays;  // of the calls
  Pinned pinned;
};

// copies: the MPI library does not reach the device's memory.
Result<Staged> stage(const Call& call, Context* context, bool copies);

}  // namespace weft::gpu
