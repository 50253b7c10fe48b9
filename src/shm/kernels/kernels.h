// What kernels.cc defines, once per instruction set it is compiled for (CMakeLists.txt).
#pragma once

#include "shm/reduction.h"

namespace weft {

namespace baseline {
Kernel find_kernel(Element element, Operator op);
}
namespace avx2 {
Kernel find_kernel(Element element, Operator op);
}

}  // namespace weft
