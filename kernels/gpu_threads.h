// The threads of a grid of one dimension, for the kernels of the programs here.
#pragma once

// Returns the number of the calling thread in its grid.
inline __device__ long my_number() {
  return static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Returns how many threads the grid has.
inline __device__ long all_threads() {
  return static_cast<long>(gridDim.x) * blockDim.x;
}
