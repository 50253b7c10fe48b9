// The kernels of gpu_notify: what the device and the stand-in of the tests share.
#pragma once

#include "weft_gpu_device.h"

// Opens when the processor says so, and tells it: the last thing that this kernel does.
WEFT_DEVICE void notify_gate(const uint64_t* gate, uint64_t* passed, uint64_t number) {
  while (weft_device_load(gate) < number) weft_device_pause();
  weft_device_store(passed, number);
}

// A thread's share of a computation.
WEFT_DEVICE void notify_compute(float* out, long thread, int rounds) {
  float value = static_cast<float>(thread % 7);
  for (int i = 0; i < rounds; ++i) value = value * 0.5F + 1.0F;
  out[thread] = value;  // near to 2
}
