// The memory and the planted failures of the stand-in for CUDA's driver.
#include "standin.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

namespace standin {
namespace {

// Attributes: multiprocessors of a device, and threads that fit into one. The stand-in's single
// multiprocessor holds as many threads as a real device.
constexpr int kProcessors = 16, kThreadsOfProcessor = 39, kAllThreads = 132 * 2048;
// Attributes of memory.
constexpr int kOfContext = 1, kOfMemoryType = 2, kOfBlock = 7, kOfManaged = 8, kOfDevice = 9;
constexpr unsigned kDevice = 2, kHost = 1;

// A block of memory. The contents of device memory lie in an unnamed file, so that other processes
// can map them, too.
struct Block {
  std::size_t bytes;
  std::byte* data;  // where the processor finds the contents
  int file = -1;    // file of the contents; -1 if not device memory
  bool managed = false;
  bool mapped = false;  // whether another process has allocated it
  int device = 0;
  void* context = nullptr;
  bool registered = false;  // whether it was allocated elsewhere and the device only maps it
  std::uint64_t id = 0;     // number of the allocation, for device memory
  std::uint64_t context_id = 0;
};

std::mutex mutex;               // guards the next six variables
std::uint64_t block_count = 0;  // number of device blocks allocated so far
std::map<int, int> attributes;  // attributes of the device whose value is not 1
std::map<Address, Block> all;   // device memory, by address
std::map<Address, Block> pinned;
std::deque<std::pair<Address, std::size_t>> freed;
// By call: number of calls until it fails, and its code.
std::map<std::string, std::pair<int, int>> planted;
std::atomic<int> error{kSuccess};
std::atomic<int> driver_version{12040};
std::atomic<bool> copies_are_held{false};

// What the driver's memory handles hold here. They are passed by value.
struct MemoryHandle {
  int process, file;
  std::size_t bytes;
  int device;
  std::byte unused[64 - 3 * sizeof(int) - sizeof(std::size_t)];
};
static_assert(sizeof(MemoryHandle) == 64);

// Returns the value of WEFT_STANDIN_MOST_AT_ONCE: the most bytes of a copy that the calling thread
// waits for. Longer ones are refused, so that a test finds out who makes them.
std::size_t most_at_once() {
  const char* const given = std::getenv("WEFT_STANDIN_MOST_AT_ONCE");
  return given ? std::strtoull(given, nullptr, 10) : ~std::size_t{0};
}

// Returns the value of WEFT_STANDIN_MOST_PINNED: how many bytes of host memory the driver pins at
// most.
std::size_t most_pinned() {
  const char* const given = std::getenv("WEFT_STANDIN_MOST_PINNED");
  return given ? std::strtoull(given, nullptr, 10) : ~std::size_t{0};
}

// Maps the file for the processor, and reserves inaccessible pages whose address is the device's
// address of the same contents.
int map_block(int file, std::size_t bytes, bool mapped, Address* address) {
  const Owner mine = owner();
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return kOutOfMemory;
  void* const device = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::lock_guard lock(mutex);
  *address = reinterpret_cast<Address>(device);
  Block& made = all[*address];
  made = {bytes, static_cast<std::byte*>(data), file, false, mapped, mine.device, mine.context};
  made.id = ++block_count;
  made.context_id = mine.id;
  return kSuccess;
}

// Keeps the addresses of the last freed blocks from being used again, so that an access to them is
// noticed.
void keep_apart(Address address, std::size_t bytes) {
  constexpr std::size_t kMost = 64;
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed.push_back({address, bytes});
  if (freed.size() <= kMost) return;
  munmap(reinterpret_cast<void*>(freed.front().first), freed.front().second);
  freed.pop_front();
}

int unmap_block(Address address, bool mapped) {
  const std::lock_guard lock(mutex);
  const auto found = all.find(address);
  if (found == all.end() || found->second.mapped != mapped) return kInvalidValue;
  const Block& gone = found->second;
  keep_apart(address, gone.bytes);
  const bool apart = reinterpret_cast<Address>(gone.data) != address;
  if (apart) munmap(gone.data, gone.bytes);
  close(gone.file);
  all.erase(found);
  return kSuccess;
}

const Block* block_of(const std::map<Address, Block>& blocks, Address address,
                      std::size_t* inside) {
  auto behind = blocks.upper_bound(address);
  if (behind == blocks.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(behind);
  *inside = address - begin;
  return *inside < block.bytes ? &block : nullptr;
}

}  // namespace

int stopped(const char* call) {
  if (error != kSuccess) return error;
  const std::lock_guard lock(mutex);
  const auto found = planted.find(call);
  if (found == planted.end() || --found->second.first > 0) return kSuccess;
  const int code = found->second.second;
  planted.erase(found);
  return code;
}

std::byte* reachable(Address address) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  const Block* const block = block_of(all, address, &inside);
  return block ? block->data + inside : reinterpret_cast<std::byte*>(address);
}

bool is_of_device(Address address) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  return block_of(all, address, &inside) != nullptr;
}

static int device_of(Address address) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  const Block* const block = block_of(all, address, &inside);
  return block ? block->device : 0;
}

static void* context_of(Address address) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  const Block* block = block_of(all, address, &inside);
  if (!block) block = block_of(pinned, address, &inside);
  return block ? block->context : nullptr;
}

bool is_reached_from(int device, Address address) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  const Block* const block = block_of(all, address, &inside);
  return !block || block->device == device || block->managed || block->mapped;
}

// Returns the number of the allocation of device memory at this address; 0 if there is none, or its
// device was reset.
static std::uint64_t block_at(Address address) {
  Owner its{};
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex);
    std::size_t inside = 0;
    const Block* const block = block_of(all, address, &inside);
    if (!block) return 0;
    its = {block->context, block->context_id, block->device};
    id = block->id;
  }
  return is_gone(its) ? 0 : id;
}

static bool is_managed(Address address) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  const Block* const block = block_of(all, address, &inside);
  return block && block->managed;
}

static bool is_within(const std::map<Address, Block>& blocks, Address address, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  const Block* const block = block_of(blocks, address, &inside);
  return block && bytes <= block->bytes - inside;
}

bool is_block_of_device(Address address, std::size_t bytes) {
  return is_within(all, address, bytes);
}

bool is_pinned(Address address, std::size_t bytes) {
  return is_within(pinned, address, bytes);
}

bool is_unknown(Address address) {
  const std::lock_guard lock(mutex);
  std::size_t inside = 0;
  const auto lies_in = [&](const std::pair<Address, std::size_t>& gone) {
    return address - gone.first < gone.second;
  };
  return !block_of(all, address, &inside) && std::none_of(freed.begin(), freed.end(), lies_in);
}

bool may_copy_now(Address to, Address from, std::size_t bytes) {
  if (bytes > most_at_once()) return false;
  const auto is_good = [&](Address one) {
    return is_unknown(one) || is_block_of_device(one, bytes);
  };
  return is_good(to) && is_good(from);
}

void drop_pinned_of(const void* context) {
  const std::lock_guard lock(mutex);
  for (auto one = pinned.begin(); one != pinned.end();) {
    const auto& [address, block] = *one;
    const bool goes = block.context == context;
    if (goes && !block.registered) keep_apart(address, block.bytes);
    one = goes ? pinned.erase(one) : std::next(one);
  }
}

void wait_while_copies_are_held() {
  copies_are_held.wait(true);
}

void fail_for_good(int code) {
  error = code;
}

bool failed_for_good() {
  return error != kSuccess;
}

}  // namespace standin

using namespace standin;

extern "C" {

__attribute__((visibility("default"))) void standin_fail(const char* call, int nth, int code) {
  const std::lock_guard lock(standin::mutex);
  planted[call] = {nth, code};
}

__attribute__((visibility("default"))) int standin_planted() {
  const std::lock_guard lock(standin::mutex);
  return static_cast<int>(standin::planted.size());
}

__attribute__((visibility("default"))) void standin_forget_errors() {
  const std::lock_guard lock(standin::mutex);
  planted.clear();
  attributes.clear();
  error = kSuccess;
}

__attribute__((visibility("default"))) void standin_set_attribute(int which, int value) {
  const std::lock_guard lock(standin::mutex);
  attributes[which] = value;
}

__attribute__((visibility("default"))) void standin_move(const void* address, int device) {
  const std::lock_guard lock(standin::mutex);
  all.at(reinterpret_cast<Address>(address)).device = device;
}

__attribute__((visibility("default"))) void standin_set_version(int version) {
  driver_version = version;
}

__attribute__((visibility("default"))) void standin_hold_copies(bool yes) {
  copies_are_held = yes;
  copies_are_held.notify_all();
}

__attribute__((visibility("default"))) void* standin_data(const void* address) {
  return reachable(reinterpret_cast<Address>(address));
}

__attribute__((visibility("default"))) int standin_allocated() {
  const std::lock_guard lock(standin::mutex);
  return static_cast<int>(all.size() + pinned.size());
}
}

extern "C" __attribute__((visibility("default"))) std::size_t standin_pinned() {
  const std::lock_guard lock(standin::mutex);
  std::size_t bytes = 0;
  for (const auto& [address, block] : pinned) bytes += block.bytes;
  return bytes;
}

DRIVER int cuInit(unsigned) {
  return stopped("cuInit");
}

DRIVER int cuDriverGetVersion(int* version) {
  *version = driver_version;
  return kSuccess;
}

DRIVER int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "a stand-in", static_cast<std::size_t>(bytes));
  return kSuccess;
}

// A negative value means that the driver does not know the attribute.
DRIVER int cuDeviceGetAttribute(int* value, int which, int) {
  const std::lock_guard lock(standin::mutex);
  const auto found = attributes.find(which);
  const int otherwise = which == kProcessors           ? all_places()
                        : which == kThreadsOfProcessor ? kAllThreads
                                                       : 1;
  *value = found == attributes.end() ? otherwise : found->second;
  return *value < 0 ? kInvalidValue : kSuccess;
}

DRIVER int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, std::size_t) {
  *blocks = 1;
  return kSuccess;
}

DRIVER int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      return kSuccess;
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      return kSuccess;
    case kInvalidHandle:
      *name = "CUDA_ERROR_INVALID_HANDLE";
      return kSuccess;
    case kNoPeerAccess:
      *name = "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED";
      return kSuccess;
    case kContextIsDestroyed:
      *name = "CUDA_ERROR_CONTEXT_IS_DESTROYED";
      return kSuccess;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kSuccess;
    case kCaptureUnsupported:
      *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

DRIVER int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  if (const int code = stopped("cuMemAlloc")) return code;
  if (!may_allocate()) return kCaptureUnsupported;
  const int file = memfd_create("standin", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  return map_block(file, bytes, false, address);
}

DRIVER int cuMemFree_v2(Address address) {
  return unmap_block(address, false);
}

static bool shares_managed_memory() {
  constexpr int kConcurrentManagedAccess = 89;
  int shares = 0;
  return cuDeviceGetAttribute(&shares, kConcurrentManagedAccess, 0) == kSuccess && shares != 0;
}

// Both processor and device can access managed memory. If the device does not permit concurrent
// access while kernels run, the processor's access is always forbidden here.
DRIVER int cuMemAllocManaged(Address* address, std::size_t bytes, unsigned) {
  if (const int code = stopped("cuMemAllocManaged")) return code;
  if (const int code = cuMemAlloc_v2(address, bytes)) return code;
  const bool shares = shares_managed_memory();
  const std::lock_guard lock(standin::mutex);
  Block& made = all[*address];
  made.managed = true;
  if (!shares) return kSuccess;
  mprotect(reinterpret_cast<void*>(*address), bytes, PROT_READ | PROT_WRITE);
  munmap(made.data, bytes);
  made.data =
      static_cast<std::byte*>(mmap(reinterpret_cast<void*>(*address), bytes, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_FIXED, made.file, 0));
  return kSuccess;
}

// handle: bytes at any alignment, as in cuda.h.
DRIVER int cuIpcGetMemHandle(void* handle, Address address) {
  if (const int code = stopped_without_context("cuIpcGetMemHandle")) return code;
  const std::lock_guard lock(standin::mutex);
  const auto found = all.find(address);
  if (found == all.end() || found->second.managed) return kInvalidValue;
  const Block& block = found->second;
  const MemoryHandle made{getpid(), block.file, block.bytes, block.device, {}};
  std::memcpy(handle, &made, sizeof made);
  return kSuccess;
}

DRIVER int cuIpcOpenMemHandle_v2(Address* address, MemoryHandle handle, unsigned) {
  if (const int code = stopped_without_context("cuIpcOpenMemHandle")) return code;
  if (!may_allocate()) return kCaptureUnsupported;
  if (!are_peers(owner().device, handle.device)) return kNoPeerAccess;
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  return file < 0 ? kInvalidValue : map_block(file, handle.bytes, true, address);
}

DRIVER int cuIpcCloseMemHandle(Address address) {
  return unmap_block(address, true);
}

static void add_pinned(void* memory, std::size_t bytes, bool registered) {
  const Owner mine = owner();
  const std::lock_guard lock(standin::mutex);
  Block& made = pinned[reinterpret_cast<Address>(memory)];
  made = {bytes, static_cast<std::byte*>(memory), -1, false, false, mine.device, mine.context};
  made.registered = registered;
}

static int remove_pinned(void* memory, bool registered) {
  const std::lock_guard lock(standin::mutex);
  const auto found = pinned.find(reinterpret_cast<Address>(memory));
  if (found == pinned.end() || found->second.registered != registered) return kInvalidValue;
  if (!registered) keep_apart(found->first, found->second.bytes);
  pinned.erase(found);
  return kSuccess;
}

DRIVER int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (const int code = stopped_without_context("cuMemHostAlloc")) return code;
  if (!may_allocate()) return kCaptureUnsupported;
  void* const made =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return bytes == 0 ? kInvalidValue : kOutOfMemory;
  add_pinned(*memory = made, bytes, false);
  return kSuccess;
}

DRIVER int cuMemFreeHost(void* memory) {
  return remove_pinned(memory, false);
}

DRIVER int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  if (const int code = stopped_without_context("cuMemHostRegister")) return code;
  if (!may_allocate()) return kCaptureUnsupported;
  if (standin_pinned() + bytes > most_pinned()) return kOutOfMemory;
  add_pinned(memory, bytes, true);
  return kSuccess;
}

DRIVER int cuMemHostUnregister(void* memory) {
  return remove_pinned(memory, true);
}

DRIVER int cuMemHostGetDevicePointer_v2(Address* address, void* memory, unsigned) {
  if (const int code = stopped("cuMemHostGetDevicePointer")) return code;
  *address = reinterpret_cast<Address>(memory);
  return is_pinned(*address, 1) ? kSuccess : kInvalidValue;
}

DRIVER int cuPointerGetAttribute(void* value, int which, Address address) {
  const bool device = is_of_device(address), managed = is_managed(address);
  if (!device && !is_pinned(address, 1)) return kInvalidValue;
  if (device && block_at(address) == 0) return kInvalidValue;
  if (which == kOfBlock) *static_cast<std::uint64_t*>(value) = block_at(address);
  if (which == kOfContext) *static_cast<void**>(value) = context_of(address);
  if (which == kOfMemoryType) *static_cast<unsigned*>(value) = device ? kDevice : kHost;
  if (which == kOfDevice) *static_cast<int*>(value) = device_of(address);
  if (which == kOfManaged) *static_cast<unsigned*>(value) = managed;
  return kSuccess;
}

DRIVER int cuMemcpy(Address to, Address from, std::size_t bytes) {
  if (const int code = stopped_without_context("cuMemcpy")) return code;
  if (!may_copy_now(to, from, bytes)) return kInvalidValue;
  if (const int code = wait_as_default_stream()) return code;
  std::memmove(reachable(to), reachable(from), bytes);
  return kSuccess;
}
