// Defines the kernels that Weft launches in the user's streams. They are compiled to device code
// only, which the library embeds as data and the driver loads: nothing is linked to the CUDA
// runtime.
#include "gpu/one_kernel.h"
#include "gpu/short_copies.h"

namespace weft::gpu {

// weft_start copies data and announces the start of a collective. weft_wait below waits for its
// end, and then copies data. Both kernels are launched with one thread block.
extern "C" __global__ void __launch_bounds__(kMostCopyThreads)
    weft_start(weft_gpu_flags flags, ShortCopies copies) {
  copy_and_start(flags, copies, threadIdx.x, blockDim.x, [] { __syncthreads(); });
}

extern "C" __global__ void __launch_bounds__(kMostCopyThreads)
    weft_wait(weft_gpu_flags flags, ShortCopies copies) {
  wait_and_copy(flags, copies, threadIdx.x, blockDim.x, [] { __syncthreads(); });
}

template <class T>
__device__ void reduce(const T* in, T* inout, std::uint64_t count, weft_gpu_op op) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += stride) {
    inout[i] = combined(op, in[i], inout[i]);
  }
}

#define WEFT_KERNEL(name, T)                                                                \
  extern "C" __global__ void weft_reduce_##name(const T* in, T* inout, std::uint64_t count, \
                                                int op) {                                   \
    reduce(in, inout, count, static_cast<weft_gpu_op>(op));                                 \
  }
WEFT_GPU_TYPES(WEFT_KERNEL)

// BlockSync: a barrier of the thread block that returns whether any of its threads has lost.
struct BlockSync {
  __device__ bool operator()(bool lost) const { return __syncthreads_or(lost) != 0; }
};

__device__ Share share_here() {
  return {static_cast<int>(blockIdx.x), threadIdx.x, blockDim.x};
}

// Two blocks of these kernels fit into a multiprocessor, as Context::room() assumes.
#define WEFT_COMBINE(name, T)                                        \
  extern "C" __global__ void __launch_bounds__(kOneKernelThreads, 2) \
      weft_combine_##name(Sharing sharing, Work work) {              \
    combine_slice<T>(sharing, work, share_here(), BlockSync());      \
  }
WEFT_GPU_TYPES(WEFT_COMBINE)

extern "C" __global__ void __launch_bounds__(kOneKernelThreads, 2)
    weft_gather(Sharing sharing, Work work) {
  gather_slice(sharing, work, share_here(), BlockSync());
}

extern "C" __global__ void __launch_bounds__(kAwaitThreads) weft_await(Sharing sharing) {
  await_slices(sharing, threadIdx.x, blockDim.x, BlockSync());
}

}  // namespace weft::gpu
