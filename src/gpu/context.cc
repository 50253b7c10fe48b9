#include "gpu/context.h"

#include <algorithm>
#include <bit>
#include <new>

#include "gpu/image.h"
#include "gpu/operators.h"

namespace weft::gpu {
namespace {

constexpr std::size_t kChannelsAtATime = 128;
constexpr std::size_t kLeastPinned = 4096;
constexpr unsigned kThreads = 256, kMostBlocks = 1024;

#define WEFT_NAME(name, T) "weft_reduce_" #name,
constexpr const char* kReductions[] = {WEFT_GPU_TYPES(WEFT_NAME)};

}  // namespace

Result<std::unique_ptr<Context>> Context::create(const Driver& driver) {
  std::unique_ptr<Context> made(new Context(driver));
  const OutsideCapture while_loading(driver);
  if (const auto loaded = made->load_kernels(); !loaded) return loaded.error();
  return made;
}

Context::~Context() {
  for (const Address one : all_numbers_) driver_.release(one);
  for (void* const one : all_pinned_) driver_.release_pinned(one);
  for (Event const one : all_events_) driver_.destroy_event(one);
}

Result<bool> Context::load_kernels() {
  void* module = nullptr;
  if (const int code = driver_.load_module(&module, weft_kernel_image); code != kSuccess) {
    const char* const why = weft_kernel_image_there
                                ? " (the driver may be older than the compiler of Weft's kernels)"
                                : " (this build of Weft has no kernels, since there was no nvcc)";
    return Error{driver_.error("cuModuleLoadData", code).message + why};
  }
  const auto find = [&](const char* name, void** function) {
    return driver_.function(function, module, name);
  };
  int code = find("weft_start", &start_);
  if (code == kSuccess) code = find("weft_wait", &wait_);
  for (std::size_t type = 0; type < kTypes && code == kSuccess; ++type) {
    code = find(kReductions[type], &reductions_[type]);
  }
  if (code != kSuccess) return driver_.error("cuModuleGetFunction", code);
  return true;
}

Result<std::vector<Channel>> Context::channels(std::size_t count) {
  const std::lock_guard lock(mutex_);
  while (channels_.size() < count) {
    if (const auto more = more_channels(); !more) return more.error();
  }
  std::vector<Channel> taken(channels_.end() - static_cast<std::ptrdiff_t>(count), channels_.end());
  channels_.resize(channels_.size() - count);
  return taken;
}

// The numbers on the device are cleared in a stream of Weft's own, since the user's may be
// captured.
Result<bool> Context::more_channels() {
  const OutsideCapture now(driver_);
  constexpr std::size_t kSentBytes = kChannelsAtATime * sizeof(std::uint64_t);
  Address sent = 0, seen = 0;
  if (const int code = driver_.allocate(&sent, kSentBytes); code != kSuccess) {
    return driver_.error("cuMemAlloc", code);
  }
  all_numbers_.push_back(sent);
  const auto memory = allocate_pinned(kChannelsAtATime * sizeof(HostFlags));
  if (!memory) return memory.error();
  Stream stream = nullptr;
  int code = driver_.address_of(&seen, *memory, 0);
  if (code == kSuccess) code = driver_.create_stream(&stream, kStreamNonBlocking);
  if (code == kSuccess) {
    code = driver_.fill(sent, 0, kSentBytes, stream);
    if (code == kSuccess) code = driver_.synchronise(stream);
    driver_.destroy_stream(stream);
  }
  if (code != kSuccess) return driver_.error("the first use of a device's flags", code);
  auto* const host = new (*memory) HostFlags[kChannelsAtATime];
  for (std::size_t i = 0; i < kChannelsAtATime; ++i) {
    auto* const flags = reinterpret_cast<HostFlags*>(seen) + i;
    auto* const number = reinterpret_cast<std::uint64_t*>(sent) + i;
    channels_.push_back({{number, &flags->ready, &flags->done}, host + i});
  }
  return true;
}

Result<std::byte*> Context::allocate_pinned(std::size_t bytes) {
  const OutsideCapture now(driver_);
  void* memory = nullptr;
  const unsigned flags = kHostPortable | kHostMapped;
  if (const int code = driver_.allocate_pinned(&memory, bytes, flags); code != kSuccess) {
    return driver_.error("cuMemHostAlloc", code);
  }
  all_pinned_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

Result<Pinned> Context::pinned(std::size_t bytes) {
  if (bytes == 0) return Pinned{};
  bytes = std::bit_ceil(std::max(bytes, kLeastPinned));
  const std::lock_guard lock(mutex_);
  if (const auto found = pinned_.find(bytes); found != pinned_.end()) {
    const Pinned taken = found->second;
    pinned_.erase(found);
    return taken;
  }
  const auto memory = allocate_pinned(bytes);
  if (!memory) return memory.error();
  return Pinned{*memory, bytes};
}

Result<Event> Context::event() {
  const std::lock_guard lock(mutex_);
  if (!events_.empty()) {
    const Event taken = events_.back();
    events_.pop_back();
    return taken;
  }
  const OutsideCapture now(driver_);
  Event made = nullptr;
  if (const int code = driver_.create_event(&made, kEventWithoutTiming); code != kSuccess) {
    return driver_.error("cuEventCreate", code);
  }
  all_events_.push_back(made);
  return made;
}

void Context::give_back(const std::vector<Channel>& channels, Pinned pinned, Event event) {
  const std::lock_guard lock(mutex_);
  for (const Channel& one : channels) {
    // One that was given up lets nobody wait any more.
    if (weft_device_load(&one.host->done) == weft_device_load(&one.host->ready))
      channels_.push_back(one);
  }
  if (pinned.memory) pinned_.emplace(pinned.bytes, pinned);
  if (event) events_.push_back(event);
}

Result<bool> Context::launch_one(void* function, const Channel& channel, Stream stream) const {
  weft_gpu_flags flags = channel.device;
  void* parameters[] = {&flags};
  const int code = driver_.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  if (code != kSuccess) return driver_.error("cuLaunchKernel", code);
  return true;
}

Result<bool> Context::launch_start(const Channel& channel, Stream stream) const {
  return launch_one(start_, channel, stream);
}

Result<bool> Context::launch_wait(const Channel& channel, Stream stream) const {
  return launch_one(wait_, channel, stream);
}

Result<bool> Context::launch_reduction(const void* in, void* inout, std::size_t count,
                                       weft_gpu_type type, weft_gpu_op op, Stream stream) const {
  if (count == 0) return true;
  std::uint64_t elements = count;
  int how = op;
  void* parameters[] = {&in, &inout, &elements, &how};
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>((count + kThreads - 1) / kThreads, kMostBlocks));
  const int code = driver_.launch(reductions_[type], blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                  parameters, nullptr);
  if (code != kSuccess) return driver_.error("cuLaunchKernel", code);
  return true;
}

Result<bool> Context::copy(Address to, Address from, std::size_t bytes, Stream stream) const {
  if (const int code = driver_.copy(to, from, bytes, stream); code != kSuccess) {
    return driver_.error("cuMemcpyAsync", code);
  }
  return true;
}

}  // namespace weft::gpu
