// Driver: pointers to the functions of the CUDA driver. It is loaded at run time, since nothing in
// Weft is linked to CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace weft::gpu {

// Opaque handles of the CUDA driver.
using Stream = void*;
using Event = void*;
using Address = std::uintptr_t;

// Constants with the values of cuda.h.
inline Stream const kStreamPerThread = reinterpret_cast<Stream>(2);
inline constexpr int kSuccess = 0, kInvalidValue = 1, kNotReady = 600;
inline constexpr int kAttributeMemoryType = 2, kAttributeBlock = 7, kAttributeIsManaged = 8;
inline constexpr int kAttributeDevice = 9;
inline constexpr unsigned kMemoryOfDevice = 2, kMemoryOfAnyKind = 4;
inline constexpr std::size_t kMostPitch = 0x7fffffff;
inline constexpr unsigned kHostPortable = 1, kHostMapped = 2;
inline constexpr unsigned kStreamNonBlocking = 1, kEventWithTiming = 0, kEventWithoutTiming = 2;
inline constexpr unsigned kNoDestructorSync = 1, kMoveReference = 1;
inline constexpr int kCaptureRelaxed = 2;
// Flags of cuStreamUpdateCaptureDependencies: whether nodes are added, or replace those before.
inline constexpr unsigned kAddDependencies = 0, kSetDependencies = 1;
// Device attribute: whether kernels may run while the host accesses managed memory.
inline constexpr int kDeviceSharesManagedMemory = 89;
// Device attributes: number of multiprocessors, and of threads that fit into one.
inline constexpr int kDeviceProcessors = 16, kDeviceThreadsOfProcessor = 39;
// Device attributes: whether the driver can write values in streams, and whether several processes
// share the device by MPS.
inline constexpr int kDeviceHasStreamValues = 122, kDeviceIsShared = 133;
inline constexpr unsigned kEnablePeerAccess = 1, kWaitUntilReached = 0;
enum CaptureStatus { kNotCapturing = 0, kCapturing = 1, kCaptureBroken = 2 };

// Rows: the parameters of a copy of rows, in the layout of CUDA_MEMCPY2D of cuda.h. Only plain
// addresses are used.
struct Rows {
  std::size_t x = 0, y = 0;
  unsigned type = kMemoryOfAnyKind;
  const void* unused_host = nullptr;
  Address address = 0;
  void* unused_array = nullptr;
  std::size_t pitch = 0;
};
struct RowsCopy {
  Rows from, to;
  std::size_t bytes = 0, rows = 0;
};

// Lists the driver functions that Weft needs. Each entry has the name of the member of Driver, the
// name of the driver function and its parameters.
#define WEFT_DRIVER_CALLS(X)                                                                       \
  X(error_name, cuGetErrorName, (int code, const char** name))                                     \
  X(current_context, cuCtxGetCurrent, (void** context))                                            \
  X(attribute, cuPointerGetAttribute, (void* value, int which, Address address))                   \
  X(allocate, cuMemAlloc_v2, (Address * address, std::size_t bytes))                               \
  X(allocate_pinned, cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags))           \
  X(register_memory, cuMemHostRegister_v2, (void* memory, std::size_t bytes, unsigned flags))      \
  X(unregister_memory, cuMemHostUnregister, (void* memory))                                        \
  X(release, cuMemFree_v2, (Address address))                                                      \
  X(release_pinned, cuMemFreeHost, (void* memory))                                                 \
  X(address_of, cuMemHostGetDevicePointer_v2, (Address * address, void* memory, unsigned flags))   \
  X(fill, cuMemsetD8Async, (Address to, unsigned char with, std::size_t bytes, Stream stream))     \
  X(copy, cuMemcpyAsync, (Address to, Address from, std::size_t bytes, Stream stream))             \
  X(copy_rows, cuMemcpy2DAsync_v2, (const RowsCopy* copy, Stream stream))                          \
  X(create_stream, cuStreamCreate, (Stream * stream, unsigned flags))                              \
  X(synchronise, cuStreamSynchronize, (Stream stream))                                             \
  X(destroy_stream, cuStreamDestroy_v2, (Stream stream))                                           \
  X(create_event, cuEventCreate, (Event * event, unsigned flags))                                  \
  X(record, cuEventRecord, (Event event, Stream stream))                                           \
  X(query, cuEventQuery, (Event event))                                                            \
  X(elapsed, cuEventElapsedTime, (float* milliseconds, Event from, Event to))                      \
  X(wait_event, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                   \
  X(destroy_event, cuEventDestroy_v2, (Event event))                                               \
  X(load_module, cuModuleLoadData, (void** module, const void* image))                             \
  X(function, cuModuleGetFunction, (void** function, void* module, const char* name))              \
  X(launch, cuLaunchKernel,                                                                        \
    (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,          \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,  \
     void** extra))                                                                                \
  X(capture_info, cuStreamGetCaptureInfo_v2,                                                       \
    (Stream stream, int* status, std::uint64_t* id, void** graph, const void** dependencies,       \
     std::size_t* count))                                                                          \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int* mode))                         \
  X(create_user_object, cuUserObjectCreate,                                                        \
    (void** object, void* data, void (*destroy)(void* data), unsigned references, unsigned flags)) \
  X(retain_user_object, cuGraphRetainUserObject,                                                   \
    (void* graph, void* object, unsigned references, unsigned flags))                              \
  X(release_user_object, cuUserObjectRelease, (void* object, unsigned references))                 \
  X(version, cuDriverGetVersion, (int* version))                                                   \
  X(set_current_context, cuCtxSetCurrent, (void* context))                                         \
  X(current_device, cuCtxGetDevice, (int* device))                                                 \
  X(device_attribute, cuDeviceGetAttribute, (int* value, int which, int device))

// Lists driver functions that some drivers lack. Their pointers are then nullptr.
#define WEFT_OPTIONAL_DRIVER_CALLS(X)                                                             \
  X(load_function, cuFuncLoad, (void* function))                                                  \
  X(context_id, cuCtxGetId, (void* context, unsigned long long* id))                              \
  X(device_uuid, cuDeviceGetUuid_v2, (DeviceUuid * uuid, int device))                             \
  X(share_memory, cuIpcGetMemHandle, (MemoryHandle * handle, Address address))                    \
  X(open_memory, cuIpcOpenMemHandle_v2, (Address * address, MemoryHandle handle, unsigned flags)) \
  X(close_memory, cuIpcCloseMemHandle, (Address address))                                         \
  X(set_dependencies, cuStreamUpdateCaptureDependencies,                                          \
    (Stream stream, void** nodes, std::size_t count, unsigned flags))                             \
  X(write_value, cuStreamWriteValue64_v2,                                                         \
    (Stream stream, Address to, std::uint64_t value, unsigned flags))                             \
  X(wait_value, cuStreamWaitValue64_v2,                                                           \
    (Stream stream, Address at, std::uint64_t value, unsigned flags))

// Types of cuda.h that are passed by value. Weft does not interpret their bytes.
struct DeviceUuid {
  unsigned char bytes[16];
};
struct MemoryHandle {
  unsigned char bytes[64];
};

struct Driver {
#define WEFT_DRIVER_MEMBER(member, name, parameters) int(*member) parameters = nullptr;
  WEFT_DRIVER_CALLS(WEFT_DRIVER_MEMBER)
  WEFT_OPTIONAL_DRIVER_CALLS(WEFT_DRIVER_MEMBER)
#undef WEFT_DRIVER_MEMBER

  // Returns an error with text such as "cuMemcpyAsync: CUDA_ERROR_INVALID_VALUE".
  Error error(const char* call, int code) const;
};

// Returns the oldest CUDA version, such as "13.0", whose driver has all required functions and
// accepts Weft's kernels. (Compiled kernels need a driver of the compiler's major version.)
std::string oldest_cuda();

// Returns the CUDA driver, which the first call loads. Returns an error that says what is missing
// on this machine if it cannot be used.
Result<const Driver*> driver();

// Returns whether the host cannot access this memory, or cannot while kernels run on the memory's
// device.
bool is_of_device(const Driver& driver, const void* memory);

// OutsideCapture: while it exists, the calling thread may make calls that a stream capture forbids.
// It affects no captured stream.
class OutsideCapture {
 public:
  explicit OutsideCapture(const Driver& driver) : driver_(driver) {
    driver_.exchange_capture_mode(&mode_);
  }
  ~OutsideCapture() { driver_.exchange_capture_mode(&mode_); }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = kCaptureRelaxed;
};

}  // namespace weft::gpu
