// Options for collectives in streams, set by environment variables.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "gpu/one_kernel.h"

namespace weft::gpu {

// Says whether collectives are carried out in one kernel. `automatic`: they are if the kernels of
// all ranks can run at the same time.
enum class OneKernel { automatic, on, off };
// Says how a stream announces starts and waits for ends outside captures: by Weft's kernels, or by
// the driver's stream memory operations. `automatic` prefers the latter if the device has them.
enum class Notify { kernel, stream, automatic };

struct Options {
  OneKernel one_kernel = OneKernel::automatic;
  Notify notify = Notify::kernel;
  // Most bytes of a copy that the kernels make which announce a start or wait for an end.
  std::size_t copied_by_kernels = 32 << 10;
  // Most bytes per rank of a collective in one kernel. The start publishes data that fit into one
  // slot, so the other ranks need no later step of this rank for them.
  std::size_t in_one_kernel = kSlotBytes;
};

Result<Options> options_of_environment();

}  // namespace weft::gpu
