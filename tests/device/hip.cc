// A stand-in for HIP's runtime: the functions that Weft and its tests call. Its device memory is
// that of the stand-in for CUDA's driver, which the processor cannot access. STANDIN_HIP_VERSION is
// ROCm's major version, 6 by default. Up to version 5 the kinds of memory have other numbers, and a
// query about the processor's memory is an error.
#include <cstdlib>

#include "standin.h"

extern "C" {
int cuMemAlloc_v2(standin::Address* address, std::size_t bytes);
int cuMemFree_v2(standin::Address address);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamSynchronize(void* stream);
int cuThreadExchangeStreamCaptureMode(int* mode);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
}

namespace {

constexpr int kHipInvalidValue = 1;

thread_local int last_error = 0;

int told(int code) {
  if (code != 0) last_error = code;
  return code;
}

int major_version() {
  const char* const asked = std::getenv("STANDIN_HIP_VERSION");
  return asked ? std::atoi(asked) : 6;
}

struct Attributes {
  int type, device;
  void *on_device, *on_host;
  int is_managed;
  unsigned flags;
};

}  // namespace

DRIVER int hipMalloc(void** memory, std::size_t bytes) {
  standin::Address address = 0;
  const int code = cuMemAlloc_v2(&address, bytes);
  *memory = reinterpret_cast<void*>(address);
  return told(code);
}

DRIVER int hipFree(void* memory) {
  return told(cuMemFree_v2(reinterpret_cast<standin::Address>(memory)));
}

namespace {

int copied(void* to, const void* from, std::size_t bytes, int direction) {
  constexpr int kByAddress = 4;
  if (direction != kByAddress) return told(kHipInvalidValue);
  const auto* const source = standin::reachable(reinterpret_cast<standin::Address>(from));
  __builtin_memmove(standin::reachable(reinterpret_cast<standin::Address>(to)), source, bytes);
  return 0;
}

}  // namespace

DRIVER int hipMemcpy(void* to, const void* from, std::size_t bytes, int direction) {
  if (const int code = standin::wait_as_default_stream()) return told(code);
  return copied(to, from, bytes, direction);
}

// If one side is pageable memory, the caller waits until the copy is complete.
DRIVER int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int direction,
                          void* stream) {
  if (const int code = cuStreamSynchronize(stream)) return told(code);
  return copied(to, from, bytes, direction);
}

DRIVER int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  void* context = nullptr;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  return told(cuStreamCreate(stream, flags));
}

DRIVER int hipStreamSynchronize(void* stream) {
  return told(cuStreamSynchronize(stream));
}

DRIVER int hipThreadExchangeStreamCaptureMode(int* mode) {
  return told(cuThreadExchangeStreamCaptureMode(mode));
}

DRIVER int hipGetDevice(int* device) {
  *device = 0;
  return 0;
}

DRIVER int hipSetDevice(int device) {
  return device == 0 ? 0 : told(kHipInvalidValue);
}

DRIVER int hipPointerGetAttributes(Attributes* of, const void* memory) {
  const bool is_old = major_version() < 6;
  const bool device = standin::is_of_device(reinterpret_cast<standin::Address>(memory));
  if (!device && is_old) return told(kHipInvalidValue);
  *of = {};
  if (device) of->type = is_old ? 1 : 2;
  return 0;
}

DRIVER int hipRuntimeGetVersion(int* version) {
  *version = major_version() * 10'000'000 + 40091;
  return 0;
}

DRIVER int hipPeekAtLastError() {
  return last_error;
}

DRIVER int hipGetLastError() {
  const int before = last_error;
  last_error = 0;
  return before;
}
