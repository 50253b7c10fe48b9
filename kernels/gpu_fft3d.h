// The kernels of gpu_fft3d: what the device and the stand-in of the tests share.
#pragma once

#include "weft_gpu_device.h"

struct FftComplex {
  double re, im;
};

// Blocks of a transposition. Before: `outer` rows of `ranks` x `middle` x `inner` points. After:
// what goes to one rank lies together, by rank, row, middle, inner. Each rank has `middle` of them.
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

// What has come, by rank of the sender and then `outer`, `middle`, `inner`, put in its place: at
// rank x rank_stride + outer x outer_stride + middle x middle_stride + inner x inner_stride.
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
