// Declares the functions that kernels.cc defines once for each instruction set (CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/kernel.h"

namespace weft {

namespace baseline {
Kernel find_kernel(Element element, Operator op);
void copy(std::byte* to, const std::byte* from, std::int64_t bytes);
}  // namespace baseline
namespace avx2 {
Kernel find_kernel(Element element, Operator op);
void copy(std::byte* to, const std::byte* from, std::int64_t bytes);
}  // namespace avx2

}  // namespace weft
