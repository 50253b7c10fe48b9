// Functions of the stand-in for CUDA's driver (tests/device) that the tests' programs call in
// addition to the driver's own.
#pragma once
#include <mpi.h>

#include <cstdlib>

#include "../../kernels/gpu_driver.h"

namespace standin {

// nullptr if the library is a real driver, whose device cannot be made to fail.
inline void (*fail)(const char* call, int nth, int code) = nullptr;
inline void (*forget_errors)() = nullptr;
inline void (*set_attribute)(int which, int value) = nullptr;
inline void (*move)(const void* address, int device) = nullptr;
inline void (*add_kernel)(const char* name, int parameters, const std::size_t* sizes,
                          void (*run)(void* const* parameters)) = nullptr;
inline void* (*data)(const void* address) = nullptr;
inline std::size_t (*pinned)() = nullptr;
inline int (*planted)() = nullptr;

// Loads the driver. Returns whether the library is one.
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
  find(library, "standin_planted", planted);
  return gpu::driver::lacking_in(library).empty();
}

// Initialises MPI for several threads, and a device: the ranks of a node take devices in turn. Ends
// the program if MPI or a device is not available.
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
