// The stand-in's kernels of reductions: Weft's own functions, in a loop.
#include <cstring>

#include "gpu/operators.h"
#include "standin.h"

namespace weft::gpu {
namespace {

template <class T>
T parameter(void* const* parameters, int which) {
  T value;
  std::memcpy(&value, parameters[which], sizeof value);
  return value;
}

template <class T>
void reduce(void* const* parameters) {
  const T* const in = static_cast<const T*>(standin_data(parameter<const void*>(parameters, 0)));
  T* const inout = static_cast<T*>(standin_data(parameter<void*>(parameters, 1)));
  const auto count = parameter<std::uint64_t>(parameters, 2);
  const auto op = static_cast<weft_gpu_op>(parameter<int>(parameters, 3));
  for (std::uint64_t i = 0; i < count; ++i) inout[i] = combined(op, in[i], inout[i]);
}

const bool added = [] {
  constexpr std::size_t sizes[] = {sizeof(void*), sizeof(void*), sizeof(std::uint64_t),
                                   sizeof(int)};
#define WEFT_ADD(name, T) standin_add_kernel("weft_reduce_" #name, 4, sizes, reduce<T>);
  WEFT_GPU_TYPES(WEFT_ADD)
#undef WEFT_ADD
  return true;
}();

}  // namespace
}  // namespace weft::gpu
