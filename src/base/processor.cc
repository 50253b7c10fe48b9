#include "base/processor.h"

namespace weft {

Processor processor() {
#ifdef __x86_64__
  if (__builtin_cpu_is("amd")) return Processor::amd;
#endif
  return Processor::other;
}

}  // namespace weft
