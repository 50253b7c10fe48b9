// The kernels of gpu_stencil.cc.
#include "gpu_stencil.h"

#include <cooperative_groups.h>

namespace {

__device__ long my_number() {
  return static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ long all_threads() {
  return static_cast<long>(gridDim.x) * blockDim.x;
}

}  // namespace

extern "C" __global__ void stencil_fill(double* to, int first, int rows, int columns) {
  stencil_fill_share(to, first, rows, columns, my_number(), all_threads());
}

extern "C" __global__ void stencil_first_and_last(Stencil s) {
  stencil_edges(s, my_number(), all_threads());
}

extern "C" __global__ void stencil_between(Stencil s) {
  stencil_share(s, 1, s.rows - 1, my_number(), all_threads());
}

extern "C" __global__ void stencil_cooperative(Stencil s, int steps, weft_gpu_flags flags) {
  const auto grid = cooperative_groups::this_grid();
  stencil_all(s, steps, flags, my_number(), all_threads(), [&] {
    __threadfence_system();
    grid.sync();
  });
}
