// A stand-in for CUDA's driver: memory of a device that this processor can neither read nor write,
// as pages without permission; what is in it lies elsewhere in the process. Only what Weft and the
// test call, and as strict as the driver: a copy needs the context of the memory on its thread.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kInvalidContext = 201;
constexpr int kOfContext = 1, kOfMemoryType = 2, kOfManaged = 8;
constexpr unsigned kDevice = 2;

struct Block {
  std::size_t bytes;
  std::byte* data;  // what is in it
};

std::mutex mutex;                     // guards the rest
std::map<std::uintptr_t, Block> all;  // by address
int context;                          // whose address is the only one
thread_local void* current = nullptr;

// Where the bytes of an address lie; nullptr: it is none of the device's.
std::byte* data_of(std::uintptr_t address) {
  const std::lock_guard lock(mutex);
  auto behind = all.upper_bound(address);
  if (behind == all.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(behind);
  return address < begin + block.bytes ? block.data + (address - begin) : nullptr;
}

std::byte* reachable(std::uintptr_t address) {
  std::byte* const data = data_of(address);
  return data ? data : reinterpret_cast<std::byte*>(address);
}

}  // namespace

#define DRIVER extern "C" __attribute__((visibility("default")))

DRIVER int cuMemAlloc_v2(std::uintptr_t* address, std::size_t bytes) {
  void* const device = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::lock_guard lock(mutex);
  *address = reinterpret_cast<std::uintptr_t>(device);
  all[*address] = {bytes, new std::byte[bytes]};
  return kSuccess;
}

DRIVER int cuMemFree_v2(std::uintptr_t address) {
  const std::lock_guard lock(mutex);
  const auto found = all.find(address);
  if (found == all.end()) return kInvalidValue;
  munmap(reinterpret_cast<void*>(address), found->second.bytes);
  delete[] found->second.data;
  all.erase(found);
  return kSuccess;
}

DRIVER int cuPointerGetAttribute(void* value, int which, std::uintptr_t address) {
  if (!data_of(address)) return kInvalidValue;
  if (which == kOfContext) *static_cast<void**>(value) = &context;
  if (which == kOfMemoryType) *static_cast<unsigned*>(value) = kDevice;
  if (which == kOfManaged) *static_cast<unsigned*>(value) = 0;
  return kSuccess;
}

DRIVER int cuCtxPushCurrent_v2(void* pushed) {
  current = pushed;
  return kSuccess;
}

DRIVER int cuCtxPopCurrent_v2(void** popped) {
  *popped = current;
  current = nullptr;
  return kSuccess;
}

DRIVER int cuMemcpy(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
  if (current != &context) return kInvalidContext;
  std::memmove(reachable(to), reachable(from), bytes);
  return kSuccess;
}
