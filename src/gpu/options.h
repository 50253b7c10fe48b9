// Options for collectives in streams, set by environment variables.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "gpu/one_kernel.h"

namespace weft::gpu {

// Says whether reductions run in one kernel. `automatic`: if kernels of all ranks can run at the
// same time.
enum class OneKernel { automatic, on, off };
// Says how a stream signals its progress outside captures: by Weft's kernels, or by the driver's
// stream memory operations. `automatic` prefers the latter if the device has them.
enum class Notify { kernel, stream, automatic };

struct Options {
  OneKernel one_kernel = OneKernel::automatic;
  Notify notify = Notify::kernel;
  // Transfers of up to this many bytes are copied by the kernels that announce a start or an end.
  std::size_t copied_by_kernels = 32 << 10;
  // The most bytes per rank in one kernel. A start publishes data that fit into one slot, so other
  // ranks need no later step of this rank for them.
  std::size_t in_one_kernel = kSlotBytes;
};

Result<Options> options_of_environment();

}  // namespace weft::gpu
