/* weft_gpu_device.h: how a device and the processor tell each other of a collective's progress.
 *
 * A kernel of the user's that runs through several steps may start a persistent collective itself,
 * and wait for it: weft_gpu_flags_of (weft_gpu.h) has the flags, one thread of the grid calls
 * weft_device_start when all data are written, and weft_device_wait before anything is read.
 * Between these and the other threads the kernel synchronises its grid. Buffers must then be memory
 * that the processor reaches, too (cudaHostAlloc; managed memory, where the device's
 * concurrentManagedAccess is 1), since no copy goes along.
 *
 * Weft's own kernels do just this; the stand-in of the tests runs the same functions.
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

/* Sequence numbers begin at 1. `sent` lies on the device and only kernels write it, so that a
 * captured graph can run any number of times; the two others lie in the processor's memory. */
typedef struct weft_gpu_flags {
  uint64_t* sent;  /* how often it was started */
  uint64_t* ready; /* the same, for the processor to see */
  uint64_t* done;  /* how many of these have ended; WEFT_GPU_GIVEN_UP: nobody waits any more */
} weft_gpu_flags;

/* Not the largest value: the driver's cuStreamWaitValue64 compares as signed numbers. */
#define WEFT_GPU_GIVEN_UP ((uint64_t)INT64_MAX)

#ifdef __cplusplus

/* Visible together with all that was written before. */
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

/* For all that was started before. */
WEFT_DEVICE void weft_device_wait(weft_gpu_flags flags) {
  const uint64_t number = *flags.sent;
  while (weft_device_load(flags.done) < number) weft_device_pause();
}

#endif
#endif
