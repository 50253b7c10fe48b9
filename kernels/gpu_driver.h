// The CUDA driver, which is loaded at run time; nothing is linked to CUDA. Each driver function
// that the programs call is a variable of its name.
#pragma once
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft_gpu.h"

namespace gpu::driver {

using Stream = weft_gpu_stream;
using Address = std::uintptr_t;

#define GPU_DRIVER_CALLS(X)                                                                        \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuDeviceGetCount, (int* count))                                                                \
  X(cuDeviceGet, (int* device, int number))                                                        \
  X(cuDeviceGetAttribute, (int* value, int which, int device))                                     \
  X(cuDeviceGetName, (char* name, int bytes, int device))                                          \
  X(cuDevicePrimaryCtxRetain, (void** context, int device))                                        \
  X(cuCtxSetCurrent, (void* context))                                                              \
  X(cuCtxGetCurrent, (void** context))                                                             \
  X(cuMemAlloc_v2, (Address * address, std::size_t bytes))                                         \
  X(cuMemAllocManaged, (Address * address, std::size_t bytes, unsigned flags))                     \
  X(cuMemFree_v2, (Address address))                                                               \
  X(cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags))                            \
  X(cuMemHostGetDevicePointer_v2, (Address * address, void* memory, unsigned flags))               \
  X(cuMemcpy, (Address to, Address from, std::size_t bytes))                                       \
  X(cuMemcpyAsync, (Address to, Address from, std::size_t bytes, Stream stream))                   \
  X(cuStreamCreate, (Stream * stream, unsigned flags))                                             \
  X(cuStreamSynchronize, (Stream stream))                                                          \
  X(cuStreamDestroy_v2, (Stream stream))                                                           \
  X(cuEventCreate, (void** event, unsigned flags))                                                 \
  X(cuEventRecord, (void* event, Stream stream))                                                   \
  X(cuStreamWaitEvent, (Stream stream, void* event, unsigned flags))                               \
  X(cuStreamWriteValue64_v2, (Stream stream, Address to, std::uint64_t value, unsigned flags))     \
  X(cuStreamWaitValue64_v2, (Stream stream, Address at, std::uint64_t value, unsigned flags))      \
  X(cuModuleLoadData, (void** module, const void* image))                                          \
  X(cuModuleGetFunction, (void** function, void* module, const char* name))                        \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                   \
    (int* blocks, void* function, int threads, std::size_t shared))                                \
  X(cuLaunchKernel,                                                                                \
    (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
     unsigned shared, Stream stream, void** parameters, void** extra))                             \
  X(cuLaunchCooperativeKernel,                                                                     \
    (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
     unsigned shared, Stream stream, void** parameters))                                           \
  X(cuStreamBeginCapture_v2, (Stream stream, int mode))                                            \
  X(cuStreamEndCapture, (Stream stream, void** graph))                                             \
  X(cuGraphInstantiateWithFlags, (void** exec, void* graph, unsigned long long flags))             \
  X(cuGraphLaunch, (void* exec, Stream stream))                                                    \
  X(cuGraphExecDestroy, (void* exec))                                                              \
  X(cuGraphDestroy, (void* graph))

#define GPU_DECLARE(name, parameters) inline int(*name) parameters = nullptr;
GPU_DRIVER_CALLS(GPU_DECLARE)

// Returns the address of a function in the library; nullptr if the library is nullptr or lacks it.
inline void* symbol_of(void* library, const char* name) {
  return library ? dlsym(library, name) : nullptr;
}
template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(symbol_of(library, name));
  return function != nullptr;
}

// Looks up all functions. Returns the name of the first one that the library lacks, or "".
inline std::string lacking_in(void* library) {
#define GPU_FIND(name, parameters) \
  if (!find(library, #name, name)) return #name;
  GPU_DRIVER_CALLS(GPU_FIND)
  return "";
}

}  // namespace gpu::driver
