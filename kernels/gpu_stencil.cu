// The kernels of gpu_stencil.cc.
#include <cooperative_groups.h>

#include "gpu_stencil.h"
#include "gpu_threads.h"

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
