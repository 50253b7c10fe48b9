// The compiled kernels (kernels.cu), as the driver loads them.
#pragma once

extern "C" {
extern const unsigned char weft_kernel_image[];
extern const bool weft_kernel_image_there;  // false: the build had no nvcc
extern const int weft_kernel_image_cuda;    // whose nvcc: 13000 for 13.0; 0: none
}
