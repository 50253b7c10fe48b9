// The kernels of gpu_notify.cc, gpu_allreduce.cc and gpu_fft3d.cc.
#include "gpu_fft3d.h"
#include "gpu_notify.h"
#include "gpu_threads.h"

extern "C" __global__ void program_nothing() {}

extern "C" __global__ void notify_gate_kernel(const uint64_t* gate, uint64_t* passed,
                                              uint64_t number) {
  notify_gate(gate, passed, number);
}

extern "C" __global__ void notify_compute_kernel(float* out, int rounds) {
  notify_compute(out, my_number(), rounds);
}

extern "C" __global__ void fft_pack_kernel(FftPack pack) {
  fft_pack(pack, my_number(), all_threads());
}

extern "C" __global__ void fft_place_kernel(FftPlace place) {
  fft_place(place, my_number(), all_threads());
}
