/* weft_gpu_device.h: functions by which kernels start persistent collectives and wait for them.
 *
 * A kernel that carries out several steps may start a persistent collective itself, and wait for
 * it. weft_gpu_flags_of (weft_gpu.h) returns the flags for that. One thread of the grid calls
 * weft_device_start when all data are written, and weft_device_wait before any data are read.
 * Before the former and after the latter the kernel must synchronise its grid. Nothing is copied,
 * so the buffers must be accessible to the host (cudaHostAlloc, or managed memory if the device's
 * attribute concurrentManagedAccess is 1).
 *
 * Weft's own kernels use these functions, and so does an implementation on the host for tests.
 */
#ifndef WEFT_GPU_DEVICE_H
#define WEFT_GPU_DEVICE_H

#include <sched.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WEFT_DEVICE __host__ __device__ inline
#else
#define WEFT_DEVICE inline
#endif

/* weft_gpu_flags: counters of a persistent collective. `sent` is in device memory and written only
 * by kernels, so that a captured graph can be launched any number of times. The other two are in
 * host memory. */
typedef struct weft_gpu_flags {
  uint64_t* sent;  /* how often the collective was started */
  uint64_t* ready; /* how often it was started; the host reads this counter */
  uint64_t* done;  /* how often it has ended; WEFT_GPU_GIVEN_UP if it never will */
} weft_gpu_flags;

/* Value of `done` after which nobody waits. It is the largest signed number, since the driver's
 * cuStreamWaitValue64 compares signed numbers. */
#define WEFT_GPU_GIVEN_UP ((uint64_t)INT64_MAX)

#ifdef __cplusplus

/* Stores a value. Whoever sees it also sees everything that this thread has written before. */
WEFT_DEVICE void weft_device_store(uint64_t* to, uint64_t value) {
#ifdef __CUDA_ARCH__
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

WEFT_DEVICE uint64_t weft_device_load(const uint64_t* from) {
#ifdef __CUDA_ARCH__
  uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
#else
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
#endif
}

WEFT_DEVICE void weft_device_pause() {
#ifdef __CUDA_ARCH__
  __nanosleep(100);
#else
  sched_yield();
#endif
}

WEFT_DEVICE void weft_device_start(weft_gpu_flags flags) {
  const uint64_t number = *flags.sent + 1;
  *flags.sent = number;
  weft_device_store(flags.ready, number);
}

/* Waits until the collective has ended as often as it was started. */
WEFT_DEVICE void weft_device_wait(weft_gpu_flags flags) {
  const uint64_t number = *flags.sent;
  while (weft_device_load(flags.done) < number) weft_device_pause();
}

#endif
#endif
