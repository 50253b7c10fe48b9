// The kernels that tell of a start and wait for an end, of one block each. They copy short data
// themselves: a copy of the driver's is one more node in a stream, which takes longer than its
// bytes do. The kernels and the tests' stand-in use these same functions.
#pragma once

#include <cstdint>

#include "gpu/packs.h"
#include "weft_gpu_device.h"

namespace weft::gpu {

inline constexpr int kMostShortCopies = 4;
// More would take the places of a kernel that runs beside.
inline constexpr unsigned kMostCopyThreads = 256;

struct ShortCopy {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::uint64_t bytes;
};

// A kernel's parameter.
struct ShortCopies {
  ShortCopy all[kMostShortCopies];
  int count;
};

// This thread's share. Several packs are on their way at one time: the processor's memory is far.
WEFT_DEVICE void copy_share(const ShortCopy& one, std::uint64_t thread, std::uint64_t threads) {
  constexpr std::uint64_t kAtATime = 8;
  using Bytes = Pack<std::uint8_t>;
  const std::uint64_t packs = (one.bytes + kPackBytes - 1) / kPackBytes;
  for (std::uint64_t first = thread; first < packs; first += kAtATime * threads) {
    Bytes taken[kAtATime];
    for (std::uint64_t i = 0; i < kAtATime; ++i) {
      const std::uint64_t pack = first + i * threads;
      if (pack < packs) taken[i] = pack_of(one.from, pack * kPackBytes, one.bytes);
    }
    for (std::uint64_t i = 0; i < kAtATime; ++i) {
      const std::uint64_t pack = first + i * threads;
      if (pack < packs) put(taken[i], one.to, pack * kPackBytes, one.bytes);
    }
  }
}

WEFT_DEVICE void copy_all(const ShortCopies& copies, std::uint64_t thread, std::uint64_t threads) {
  for (int i = 0; i < copies.count; ++i) copy_share(copies.all[i], thread, threads);
}

// What precedes it in the stream has ended. sync: lets the threads of the block meet.
template <class Sync>
WEFT_DEVICE void copy_and_start(weft_gpu_flags flags, const ShortCopies& copies,
                                std::uint64_t thread, std::uint64_t threads, const Sync& sync) {
  copy_all(copies, thread, threads);
  sync();
  if (thread == 0) weft_device_start(flags);
}

template <class Sync>
WEFT_DEVICE void wait_and_copy(weft_gpu_flags flags, const ShortCopies& copies,
                               std::uint64_t thread, std::uint64_t threads, const Sync& sync) {
  if (thread == 0) weft_device_wait(flags);
  sync();
  copy_all(copies, thread, threads);
}

}  // namespace weft::gpu
