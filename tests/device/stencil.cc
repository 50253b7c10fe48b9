// The kernels of kernels/gpu_stencil in the stand-in for CUDA's driver. One thread does what the
// whole grid does on a device.
#include <cstring>

#include "kernels/gpu_stencil.h"
#include "standin.h"

namespace {

Stencil stencil_in(void* const* parameters) {
  Stencil s;
  std::memcpy(&s, parameters[0], sizeof s);
  s.in = static_cast<const double*>(standin_data(s.in));
  s.out = static_cast<double*>(standin_data(s.out));
  s.halo = static_cast<const double*>(standin_data(s.halo));
  s.edge = static_cast<double*>(standin_data(s.edge));
  return s;
}

const bool added = [] {
  constexpr std::size_t sizes[] = {sizeof(Stencil), sizeof(int), sizeof(weft_gpu_flags)};
  constexpr std::size_t fill[] = {sizeof(double*), sizeof(int), sizeof(int), sizeof(int)};
  standin_add_kernel("stencil_fill", 4, fill, [](void* const* parameters) {
    double* to;
    int numbers[3];
    std::memcpy(&to, parameters[0], sizeof to);
    for (int i = 0; i < 3; ++i) std::memcpy(&numbers[i], parameters[i + 1], sizeof(int));
    to = static_cast<double*>(standin_data(to));
    stencil_fill_share(to, numbers[0], numbers[1], numbers[2], 0, 1);
  });
  standin_add_kernel("stencil_first_and_last", 1, sizes,
                     [](void* const* parameters) { stencil_edges(stencil_in(parameters), 0, 1); });
  standin_add_kernel("stencil_between", 1, sizes, [](void* const* parameters) {
    const Stencil s = stencil_in(parameters);
    stencil_share(s, 1, s.rows - 1, 0, 1);
  });
  standin_add_kernel("stencil_cooperative", 3, sizes, [](void* const* parameters) {
    int steps;
    weft_gpu_flags flags;
    std::memcpy(&steps, parameters[1], sizeof steps);
    std::memcpy(&flags, parameters[2], sizeof flags);
    flags.sent = static_cast<std::uint64_t*>(standin_data(flags.sent));
    stencil_all(stencil_in(parameters), steps, flags, 0, 1, [] {});
  });
  return true;
}();

}  // namespace
