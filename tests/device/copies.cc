// Copies in streams of the stand-in for CUDA's driver.
#include <cstring>
#include <vector>

#include "standin.h"
#include "streams.h"
#include "timeline.h"

using namespace standin;

// Copies from or to pageable memory. The caller waits until the copy is complete.
static int copy_pageable(Address to, Address from, std::size_t bytes, void* stream) {
  if (!may_copy_now(to, from, bytes)) return kInvalidValue;
  if (const int code = wait_before_copy(stream)) return code;
  std::memmove(reachable(to), reachable(from), bytes);
  return kSuccess;
}

DRIVER int cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  if (const int code = stopped_without_context("cuMemcpyAsync")) return code;
  for (const Address one : {to, from}) {
    if (is_block_of_device(one, bytes) || is_pinned(one, bytes)) continue;
    const bool pageable = is_unknown(one) && !is_pinned(one, 1);
    return pageable ? copy_pageable(to, from, bytes, stream) : kInvalidValue;
  }
  return enqueue(stream, named(is_of_device(to) ? "copy to the device" : "copy to the host", [=] {
                   wait_while_copies_are_held();
                   if (may_run({{to, bytes}, {from, bytes}})) {
                     std::memcpy(reachable(to), reachable(from), bytes);
                   }
                 }));
}

// Declared as in cuda.h.
struct CUDA_MEMCPY2D {
  std::size_t from_x, from_y;
  unsigned from_type;
  const void* from_host;
  Address from;
  void* from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  unsigned to_type;
  void* to_host;
  Address to;
  void* to_array;
  std::size_t to_pitch;
  std::size_t bytes, rows;
};

DRIVER int cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* given, void* stream) {
  if (const int code = stopped_without_context("cuMemcpy2DAsync")) return code;
  constexpr unsigned kUnified = 4;
  constexpr std::size_t kMostPitch = 0x7fffffff;
  const CUDA_MEMCPY2D c = *given;
  if (c.rows == 0 || c.from_type != kUnified || c.to_type != kUnified) return kInvalidValue;
  if (c.from_x || c.from_y || c.to_x || c.to_y) return kInvalidValue;
  for (const std::size_t pitch : {c.from_pitch, c.to_pitch}) {
    if (pitch < c.bytes || pitch > kMostPitch) return kInvalidValue;
  }
  const std::vector<Range> ranges = {{c.from, (c.rows - 1) * c.from_pitch + c.bytes},
                                     {c.to, (c.rows - 1) * c.to_pitch + c.bytes}};
  for (const Range& one : ranges) {
    if (!is_block_of_device(one.begin, one.bytes) && !is_pinned(one.begin, one.bytes)) {
      return kInvalidValue;
    }
  }
  return enqueue(stream, [=] {
    if (!may_run(ranges)) return;
    for (std::size_t row = 0; row < c.rows; ++row) {
      std::memcpy(reachable(c.to + row * c.to_pitch), reachable(c.from + row * c.from_pitch),
                  c.bytes);
    }
  });
}

DRIVER int cuMemsetD8Async(Address to, unsigned char with, std::size_t bytes, void* stream) {
  if (const int code = stopped_without_context("cuMemsetD8Async")) return code;
  if (!is_block_of_device(to, bytes)) return kInvalidValue;
  return enqueue(stream, [=] {
    if (may_run({{to, bytes}})) std::memset(reachable(to), with, bytes);
  });
}
