// The kernels of gpu_cg.cc.
#include "gpu_cg.h"
#include "gpu_threads.h"

extern "C" __global__ void cg_begin(Cg c) {
  cg_begin_share(c, my_number(), all_threads());
}

extern "C" __global__ void cg_product_inside(Cg c) {
  cg_product_share(c, true, my_number(), all_threads());
}

extern "C" __global__ void cg_product_edges(Cg c) {
  cg_product_share(c, false, my_number(), all_threads());
}

// The next two have kCgParts threads.
extern "C" __global__ void cg_first(Cg c) {
  cg_first_share(c, my_number(), all_threads());
}

extern "C" __global__ void cg_update(Cg c) {
  cg_update_share(c, my_number(), all_threads());
}

// It has one block.
extern "C" __global__ void cg_add(Cg c) {
  cg_sum(c, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), [] { __syncthreads(); });
}
