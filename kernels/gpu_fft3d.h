// The kernels of gpu_fft3d. The device runs these functions, and so does an implementation on the
// host for tests.
#pragma once

#include "weft_gpu_device.h"

struct FftComplex {
  double re, im;
};

// FftPack: reorders data for an alltoall. `from` has `outer` rows of `ranks` x `middle` x `inner`
// points; in `to`, the data for each rank lie together, ordered by rank, row, middle and inner.
struct FftPack {
  const FftComplex* from;
  FftComplex* to;
  long outer, ranks, middle, inner;
};

WEFT_DEVICE void fft_pack(const FftPack& p, long thread, long threads) {
  const long points = p.outer * p.ranks * p.middle * p.inner;
  for (long i = thread; i < points; i += threads) {
    const long inner = i % p.inner, middle = i / p.inner % p.middle;
    const long rank = i / (p.inner * p.middle) % p.ranks,
               outer = i / (p.inner * p.middle * p.ranks);
    p.to[((rank * p.outer + outer) * p.middle + middle) * p.inner + inner] = p.from[i];
  }
}

// FftPlace: puts received data into their places. `from` is ordered by sending rank, `outer`,
// `middle` and `inner`; each point goes to rank x rank_stride + outer x outer_stride + middle x
// middle_stride + inner x inner_stride.
struct FftPlace {
  const FftComplex* from;
  FftComplex* to;
  long ranks, outer, middle, inner;
  long rank_stride, outer_stride, middle_stride, inner_stride;
};

WEFT_DEVICE void fft_place(const FftPlace& p, long thread, long threads) {
  const long points = p.ranks * p.outer * p.middle * p.inner;
  for (long i = thread; i < points; i += threads) {
    const long inner = i % p.inner, middle = i / p.inner % p.middle;
    const long outer = i / (p.inner * p.middle) % p.outer;
    const long rank = i / (p.inner * p.middle * p.outer);
    p.to[rank * p.rank_stride + outer * p.outer_stride + middle * p.middle_stride +
         inner * p.inner_stride] = p.from[i];
  }
}
