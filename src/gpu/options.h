// What a user chooses for collectives in streams, by variables of the environment.
#pragma once

#include "base/result.h"

namespace weft::gpu {

// Reductions in one kernel. Automatic: where kernels of all ranks can run at one time.
enum class OneKernel { automatic, on, off };
// How a stream tells of its progress outside of captures: by kernels of Weft's, or by the driver's
// writes and waits of values. Automatic: the latter, where the device can.
enum class Notify { kernel, stream, automatic };

struct Options {
  OneKernel one_kernel = OneKernel::automatic;
  Notify notify = Notify::kernel;
};

// WEFT_GPU_ONE_KERNEL=auto|on|off, WEFT_GPU_NOTIFY=kernel|stream|auto.
Result<Options> options_of_environment();

}  // namespace weft::gpu
