// The kernels of gpu_notify. The device runs these functions, and so does an implementation on the
// host for tests.
#pragma once

#include "weft_gpu_device.h"

// Waits until the host has stored `number` in *gate, and then stores it in *passed as its last
// action.
WEFT_DEVICE void notify_gate(const uint64_t* gate, uint64_t* passed, uint64_t number) {
  while (weft_device_load(gate) < number) weft_device_pause();
  weft_device_store(passed, number);
}

// Carries out one thread's share of a computation.
WEFT_DEVICE void notify_compute(float* out, long thread, int rounds) {
  float value = static_cast<float>(thread % 7);
  for (int i = 0; i < rounds; ++i) value = value * 0.5F + 1.0F;
  out[thread] = value;  // about 2
}
