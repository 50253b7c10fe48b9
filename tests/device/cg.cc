// The kernels of kernels/gpu_cg in the stand-in for CUDA's driver. One thread does what the whole
// grid does on a device.
#include <algorithm>
#include <cstring>

#include "kernels/gpu_cg.h"
#include "standin.h"

namespace {

template <class T>
void find(T** pointer) {
  *pointer = static_cast<T*>(standin_data(*pointer));
}

Cg cg_in(void* const* parameters) {
  Cg c;
  std::memcpy(&c, parameters[0], sizeof c);
  for (double** one : {&c.x, &c.r, &c.w, &c.p, &c.s, &c.z, &c.q, &c.halo, &c.edge}) find(one);
  find(&c.partial), find(&c.sums), find(&c.steps);
  return c;
}

// The other threads of a device contribute nothing to the inner products.
Cg cg_alone_in(void* const* parameters) {
  const Cg c = cg_in(parameters);
  std::fill_n(c.partial, kCgParts, CgSums{0, 0});
  return c;
}

const bool added = [] {
  constexpr std::size_t sizes[] = {sizeof(Cg)};
  standin_add_kernel("cg_begin", 1, sizes,
                     [](void* const* parameters) { cg_begin_share(cg_in(parameters), 0, 1); });
  standin_add_kernel("cg_product_inside", 1, sizes, [](void* const* parameters) {
    cg_product_share(cg_in(parameters), true, 0, 1);
  });
  standin_add_kernel("cg_product_edges", 1, sizes, [](void* const* parameters) {
    cg_product_share(cg_in(parameters), false, 0, 1);
  });
  standin_add_kernel("cg_first", 1, sizes, [](void* const* parameters) {
    cg_first_share(cg_alone_in(parameters), 0, 1);
  });
  standin_add_kernel("cg_update", 1, sizes, [](void* const* parameters) {
    cg_update_share(cg_alone_in(parameters), 0, 1);
  });
  standin_add_kernel("cg_add", 1, sizes,
                     [](void* const* parameters) { cg_sum(cg_in(parameters), 0, 1, [] {}); });
  return true;
}();

}  // namespace
