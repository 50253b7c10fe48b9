// The compiled kernels (kernels.cu), in the format that the driver loads.
#pragma once

extern "C" {
extern const unsigned char weft_kernel_image[];
extern const bool weft_kernel_image_there;  // false if the build had no nvcc
extern const int weft_kernel_image_cuda;    // version of nvcc: 13000 for 13.0; 0: none
}
