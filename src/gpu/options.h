// Options for collectives in streams, which environment variables set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "gpu/one_kernel.h"

namespace weft::gpu {

// Says whether short collectives are carried out in one kernel. `automatic`: they are if the
// kernels of all ranks can run at the same time.
enum class OneKernel { automatic, on, off };
// Says by what a stream announces the start of a collective and waits for its end: by kernels of
// Weft, or by the driver's stream memory operations. `automatic` uses the latter if the device has
// them. Streams that are being captured always use kernels.
enum class Notify { kernel, stream, automatic };
// Says whether NCCL may carry out persistent collectives. `automatic`: it does where it was
// measured to be faster. `on`: it does wherever it can.
enum class UseNccl { automatic, on, off };

struct Options {
  OneKernel one_kernel = OneKernel::automatic;
  Notify notify = Notify::kernel;
  UseNccl nccl = UseNccl::automatic;
  // Most bytes that the kernels which announce a start or wait for an end copy themselves.
  std::size_t copied_by_kernels = 32 << 10;
  // How long the initialisation of a collective may measure in which form kernels carry it out.
  std::int64_t init_budget_us = 10'000;
  // Most bytes that a rank publishes in a collective of kernels alone.
  std::size_t in_one_kernel = std::size_t{32} << 20;
};

Result<Options> options_of_environment();

}  // namespace weft::gpu
