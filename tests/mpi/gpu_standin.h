// gpu_standin.h: what programs of the tests call in the stand-in of CUDA's driver (tests/device)
// beside the driver's own calls.
#pragma once
#include <mpi.h>

#include <cstdlib>

#include "../../kernels/gpu_driver.h"

namespace standin {

// nullptr: the library is a real driver, and a device does not fail when it is told to.
inline void (*fail)(const char* call, int nth, int code) = nullptr;
inline void (*forget_errors)() = nullptr;
inline void (*set_attribute)(int which, int value) = nullptr;
inline void (*move)(const void* address, int device) = nullptr;
inline void (*add_kernel)(const char* name, int parameters, const std::size_t* sizes,
                          void (*run)(void* const* parameters)) = nullptr;
inline void* (*data)(const void* address) = nullptr;
inline std::size_t (*pinned)() = nullptr;

// Whether the library is a driver at all.
inline bool load_driver(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  using gpu::driver::find;
  find(library, "standin_fail", fail);
  find(library, "standin_forget_errors", forget_errors);
  find(library, "standin_set_attribute", set_attribute);
  find(library, "standin_move", move);
  find(library, "standin_add_kernel", add_kernel);
  find(library, "standin_data", data);
  find(library, "standin_pinned", pinned);
  return gpu::driver::lacking_in(library).empty();
}

// MPI for several threads, and a device: ranks of one node have them in turn. Ends a program that
// cannot have them.
inline void begin(int* argc, char*** argv, int* rank, int* ranks) {
  int level = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) std::exit(77);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, ranks);
  using namespace gpu::driver;
  void* context = nullptr;
  int devices = 0;
  const bool found = cuInit(0) == 0 && cuDeviceGetCount(&devices) == 0 && devices > 0;
  if (!found || cuDevicePrimaryCtxRetain(&context, *rank % devices) || cuCtxSetCurrent(context))
    MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace standin
