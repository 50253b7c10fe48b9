// Functions of the two kernels that announce the start of a collective and wait for its end, each
// with one thread block. These kernels make short copies themselves: a copy by the driver adds a
// node to the stream, which takes longer than the transfer. An implementation on the host for tests
// uses these functions, too.
#pragma once

#include <cstdint>

#include "gpu/packs.h"
#include "weft_gpu_device.h"

namespace weft::gpu {

inline constexpr int kMostShortCopies = 4;
// Most threads of such a kernel. More threads would displace kernels that run at the same time.
inline constexpr unsigned kMostCopyThreads = 256;

struct ShortCopy {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::uint64_t bytes;
};

// ShortCopies: the copies that a kernel makes. It is the parameter of both kernels.
struct ShortCopies {
  ShortCopy all[kMostShortCopies];
  int count;
};

// Copies one thread's share of the data. It keeps several loads in flight to hide the long latency
// of host memory.
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

// Copies the data and announces the start of the collective, after all earlier work in the stream.
// sync() is a barrier of the thread block.
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
