// The compiled kernels (kernels.cu), in the format that the CUDA driver loads.
#pragma once

extern "C" {
extern const unsigned char weft_kernel_image[];
extern const bool weft_kernel_image_there;  // false if nvcc was missing when Weft was built
// Version of nvcc, such as 13000 for 13.0; 0 if it was missing.
extern const int weft_kernel_image_cuda;
}
