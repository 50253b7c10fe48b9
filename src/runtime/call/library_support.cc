#include "runtime/call/library_support.h"

#include <dlfcn.h>

#include "runtime/call/device_drivers.h"

namespace weft {
namespace {

bool ask_library() {
  using Query = int();
  for (const char* name : {"MPIX_Query_cuda_support", "MPIX_GPU_query_cuda"})
    if (auto* const query = reinterpret_cast<Query*>(dlsym(RTLD_DEFAULT, name)))
      return query() == 1;
  return false;
}

}  // namespace

bool library_takes_device_memory(Kind kind) {
  static const bool takes_it = ask_library();
#ifdef WEFT_FAMILY_OPENMPI
  // Open MPI's non-blocking and persistent reductions and its alltoallw access the buffers from the
  // host even if it accepts GPU memory otherwise.
  const bool is_w = kind == Kind::alltoallw || kind == Kind::neighbor_alltoallw;
  if (reduces(kind) || is_w) return false;
#else
  static_cast<void>(kind);
#endif
  return takes_it;
}

bool may_need_copies(Kind kind) {
  look_for_devices();
  return devices_possible() && is_driver_loaded() && !library_takes_device_memory(kind);
}

}  // namespace weft
