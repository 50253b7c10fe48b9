// By CUDA's driver, where the program has loaded it: Weft loads nothing. Copies go through the
// context that the memory belongs to, on whatever thread.
#include "runtime/device_memory.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace weft {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

// Of cuda.h.
constexpr int kOfContext = 1, kOfMemoryType = 2, kOfManaged = 8;
constexpr unsigned kDeviceMemory = 2;

struct Driver {
  int (*attribute)(void* value, int which, std::uintptr_t address) = nullptr;
  int (*copy)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) = nullptr;
  int (*push_context)(void* context) = nullptr;
  int (*pop_context)(void** context) = nullptr;
};

std::atomic<bool> possible{false};

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

// nullptr: it has not been loaded.
const Driver* loaded_driver() {
  void* const library = dlopen(kDriver, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  static Driver driver;
  const bool complete = find(library, "cuPointerGetAttribute", driver.attribute) &&
                        find(library, "cuMemcpy", driver.copy) &&
                        find(library, "cuCtxPushCurrent_v2", driver.push_context) &&
                        find(library, "cuCtxPopCurrent_v2", driver.pop_context);
  return complete ? &driver : nullptr;
}

// How many libraries the process has ever loaded: as long as that stays, the driver has not come.
unsigned long long loads() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* first, std::size_t, void* found) {
        *static_cast<unsigned long long*>(found) = first->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

const Driver* driver() {
  static std::atomic<const Driver*> found{nullptr};
  static std::atomic<unsigned long long> looked_at{0};
  if (const Driver* there = found.load(std::memory_order_acquire)) return there;
  const unsigned long long now = loads();
  if (looked_at.load(std::memory_order_relaxed) == now) return nullptr;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  found.store(loaded_driver(), std::memory_order_release);
  looked_at.store(now, std::memory_order_relaxed);
  return found.load();
}

// The program's own data and the heap behind it, where most short buffers lie: to ask for these
// takes longer than to compare.
bool is_surely_the_processors(std::uintptr_t address) {
  static const std::uintptr_t program = [] {
    std::uintptr_t begin = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* first, std::size_t, void* found) {
          *static_cast<std::uintptr_t*>(found) = first->dlpi_addr + first->dlpi_phdr[0].p_vaddr;
          return 1;
        },
        &begin);
    return begin;
  }();
  return address >= program && address < reinterpret_cast<std::uintptr_t>(sbrk(0));
}

bool is_of_device(const std::byte* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (is_surely_the_processors(address)) return false;
  const Driver* const asked = driver();
  unsigned type = 0, managed = 0;
  if (!asked || asked->attribute(&type, kOfMemoryType, address) != 0) return false;
  if (type != kDeviceMemory) return false;
  return asked->attribute(&managed, kOfManaged, address) != 0 || managed == 0;
}

// device: which of the two has the context.
bool copy(std::byte* to, const std::byte* from, std::int64_t bytes, const std::byte* device) {
  const Driver& by = *driver();
  void *context = nullptr, *popped = nullptr;
  by.attribute(&context, kOfContext, reinterpret_cast<std::uintptr_t>(device));
  const bool pushed = context && by.push_context(context) == 0;
  const int code = by.copy(reinterpret_cast<std::uintptr_t>(to),
                           reinterpret_cast<std::uintptr_t>(from), static_cast<std::size_t>(bytes));
  if (pushed) by.pop_context(&popped);
  return code == 0;
}

// It lies there before the collective begins.
bool reads(const Call& call, const Shape& shape, Buffer buffer) {
  if (buffer == Buffer::send) return true;
  const bool input = shape.in_place || (call.kind == Kind::bcast && shape.rank == shape.root);
  const bool without_holes =
      shape.recv.plain && std::all_of(shape.types.begin(), shape.types.end(),
                                      [](const Layout& one) { return one.plain; });
  return input || !without_holes;
}

bool writes(const Call& call, const Shape& shape, Buffer buffer) {
  return buffer == Buffer::recv && !(call.kind == Kind::bcast && shape.rank == shape.root);
}

}  // namespace

void look_for_devices() {
  bool there = dlopen(kDriver, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  for (const char* node : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvhost-gpu", "/dev/dxg"})
    there = there || access(node, F_OK) == 0;
  possible.store(there, std::memory_order_relaxed);
}

bool devices_possible() {
  return possible.load(std::memory_order_relaxed);
}

StagedBuffers::Copy StagedBuffers::copy_of(const Call& call, const Shape& shape, Buffer buffer) {
  const void* const given = buffer == Buffer::send ? call.sendbuf : call.recvbuf;
  if (given == MPI_IN_PLACE) return {};
  auto* const origin = static_cast<std::byte*>(const_cast<void*>(given));
  Copy made;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  made.first = std::numeric_limits<std::int64_t>::max();
  for (const Operand& run : buffer_runs(shape, buffer)) {
    const weft::Range touched = touched_bytes(shape, run);
    if (run.at.buffer != buffer || touched.end <= touched.begin) continue;
    made.runs.push_back({touched.begin, touched.end - touched.begin});
    made.first = std::min(made.first, touched.begin);
    end = std::max(end, touched.end);
  }
  if (made.runs.empty() || !is_of_device(origin + made.runs[0].begin)) return {};
  made.device = origin;
  made.memory.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(end - made.first)]);
  made.is_read = reads(call, shape, buffer);
  made.is_written = writes(call, shape, buffer);
  return made;
}

std::unique_ptr<StagedBuffers> StagedBuffers::of(const Call& call, const Shape& shape) {
  StagedBuffers made;
  made.send_ = copy_of(call, shape, Buffer::send);
  made.recv_ = copy_of(call, shape, Buffer::recv);
  if (!made.recv_.device && !made.send_.device) return nullptr;
  return std::make_unique<StagedBuffers>(std::move(made));
}

bool StagedBuffers::there() const {
  return (!send_.device || send_.memory) && (!recv_.device || recv_.memory);
}

Call StagedBuffers::staged(Call call) const {
  if (send_.device) call.sendbuf = send_.origin();
  if (recv_.device) call.recvbuf = recv_.origin();
  if (call.kind == Kind::bcast) call.sendbuf = call.recvbuf;  // both are the one buffer
  return call;
}

bool StagedBuffers::bring_in() const {
  bool copied = true;
  for (const Copy* one : {&send_, &recv_})
    for (const Range& run : one->is_read ? one->runs : std::vector<Range>())
      copied = copied && copy(one->origin() + run.begin, one->device + run.begin, run.bytes,
                              one->device + run.begin);
  return copied;
}

bool StagedBuffers::take_out() const {
  bool copied = true;
  for (const Copy* one : {&send_, &recv_})
    for (const Range& run : one->is_written ? one->runs : std::vector<Range>())
      copied = copied && copy(one->device + run.begin, one->origin() + run.begin, run.bytes,
                              one->device + run.begin);
  return copied;
}

}  // namespace weft
