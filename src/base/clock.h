// Reads the clock for the summary and the trace. Its times are in nanoseconds, monotonic, and
// comparable between processes of a node.
#pragma once

#include <time.h>

#include <cstdint>

namespace weft {

inline std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1'000'000'000) + t.tv_nsec;
}

// Returns the processor's time-stamp counter, which takes fewer instructions to read than now_ns().
inline std::uint64_t now_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<std::uint64_t>(now_ns());
#endif
}

// Returns roughly the number of now_ticks() in 20 us. On x86 the frequency of the counter is
// assumed to be 2 to 4 GHz; other processors report it.
inline std::uint64_t ticks_in_20us() {
#if defined(__x86_64__)
  return 1 << 16;
#elif defined(__aarch64__)
  std::uint64_t per_s;
  asm("mrs %0, cntfrq_el0" : "=r"(per_s));
  return per_s / 50'000;
#else
  return 20'000;
#endif
}

}  // namespace weft
