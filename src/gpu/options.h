// What a user chooses for collectives in streams, by variables of the environment.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "gpu/one_kernel.h"

namespace weft::gpu {

// Reductions in one kernel. Automatic: where kernels of all ranks can run at one time.
enum class OneKernel { automatic, on, off };
// How a stream tells of its progress outside of captures: by kernels of Weft's, or by the driver's
// writes and waits of values. Automatic: the latter, where the device can.
enum class Notify { kernel, stream, automatic };

struct Options {
  OneKernel one_kernel = OneKernel::automatic;
  Notify notify = Notify::kernel;
  // Data of so many bytes, or fewer, are copied by the kernels that tell of a start and wait.
  std::size_t copied_by_kernels = 32 << 10;
  // Of a rank, in one kernel. What is in one slot, a start publishes: it ends whatever another rank
  // waits for before.
  std::size_t in_one_kernel = kSlotBytes;
};

Result<Options> options_of_environment();

}  // namespace weft::gpu
