// The one clock of summary and trace: nanoseconds, monotonic, comparable between processes of a
// node.
#pragma once

#include <time.h>

#include <cstdint>

namespace weft {

inline std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1'000'000'000) + t.tv_nsec;
}

}  // namespace weft
