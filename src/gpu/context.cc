#include "gpu/context.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/image.h"
#include "gpu/operators.h"

namespace weft::gpu {
namespace {

constexpr std::size_t kLeastPinned = 4096;

#define WEFT_NAME(name, T) "weft_reduce_" #name,
constexpr const char* kReductions[] = {WEFT_GPU_TYPES(WEFT_NAME)};
#undef WEFT_NAME
#define WEFT_NAME(name, T) "weft_combine_" #name,
constexpr const char* kCombinations[] = {WEFT_GPU_TYPES(WEFT_NAME)};

}  // namespace

Result<std::unique_ptr<Context>> Context::create(const Driver& driver) {
  std::unique_ptr<Context> made(new Context(driver));
  if (const int code = driver.current_context(&made->own_); code != kSuccess) {
    return driver.error("cuCtxGetCurrent", code);
  }
  const OutsideCapture while_loading(driver);
  if (const auto loaded = made->load_kernels(); !loaded) return loaded.error();
  made->ask_device();
  if (!driver.context_id) {
    if (const auto left = made->leave_mark(); !left) return left.error();
  }
  return made;
}

void Context::ask_device() {
  if (driver_.context_id) driver_.context_id(own_, &id_);
  int there = 0;
  const bool known = driver_.current_device(&device_) == kSuccess;
  has_stream_values_ =
      known && driver_.write_value && driver_.wait_value &&
      driver_.device_attribute(&there, kDeviceHasStreamValues, device_) == kSuccess && there != 0;
  int processors = 0, threads = 0;
  driver_.device_attribute(&processors, kDeviceProcessors, device_);
  driver_.device_attribute(&threads, kDeviceThreadsOfProcessor, device_);
  // Waiting kernels take at most half of the device, since their blocks may need many registers,
  // and so that ranks of other communicators find room, too.
  constexpr int kHalf = 2;
  waiting_room_ = static_cast<int>(static_cast<std::int64_t>(processors) * threads /
                                   (kHalf * static_cast<int>(kOneKernelThreads)));
}

// Allocates a block of device memory whose ID identifies the context, since the ID of a block is
// never reused. Drivers before CUDA 12 have no IDs of contexts.
Result<bool> Context::leave_mark() {
  if (const int code = driver_.allocate(&mark_, sizeof id_); code != kSuccess) {
    return driver_.error("cuMemAlloc", code);
  }
  all_numbers_.push_back(mark_);
  if (const int code = driver_.attribute(&id_, kAttributeBlock, mark_); code != kSuccess) {
    return driver_.error("cuPointerGetAttribute", code);
  }
  return true;
}

// Returns whether the device was reset. Besides the handle or address the ID is compared, since a
// later context or block may have the same handle or address.
bool Context::is_gone() const {
  unsigned long long id = id_;
  if (driver_.context_id) return driver_.context_id(own_, &id) != kSuccess || id != id_;
  const int code = driver_.attribute(&id, kAttributeBlock, mark_);
  return code == kInvalidValue || id != id_;
}

bool Context::reaches(Address address) const {
  int device = device_;
  return driver_.attribute(&device, kAttributeDevice, address) != kSuccess || device == device_;
}

// Makes this context current, since a library that calls CUDA may have made another one current.
void Context::make_current() const {
  thread_local const bool is_relaxed = [this] {
    int mode = kCaptureRelaxed;
    return driver_.exchange_capture_mode(&mode) == kSuccess;
  }();
  (void)is_relaxed;
  void* now = nullptr;
  if (driver_.current_context(&now) == kSuccess && now == own_) return;
  driver_.set_current_context(own_);
}

Context::~Context() {
  for (Stream const one : {stream_, copy_streams_.in, copy_streams_.out}) {
    // The driver destroys the stream when its work has completed.
    if (one) driver_.destroy_stream(one);
  }
  for (const Address one : all_numbers_) driver_.release(one);
  for (void* const one : all_pinned_) driver_.release_pinned(one);
  for (const auto& one : all_flags_) driver_.unregister_memory(one.get());
  for (Event const one : all_events_) driver_.destroy_event(one);
  for (const auto& [handle, region] : mapped_) driver_.close_memory(region);
}

std::string Context::why_not_loaded() const {
  if (!weft_kernel_image_there) return "this build of Weft has no kernels, since there was no nvcc";
  int version = 0;
  driver_.version(&version);
  if (version / 1000 >= weft_kernel_image_cuda / 1000) {
    return "Weft's kernels are for devices of compute capability 7.5 or later";
  }
  return "the driver is that of CUDA " + std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10) + "; Weft's kernels need that of CUDA " +
         oldest_cuda() + " or later";
}

Result<bool> Context::load_kernels() {
  void* module = nullptr;
  if (const int code = driver_.load_module(&module, weft_kernel_image); code != kSuccess) {
    return Error{driver_.error("cuModuleLoadData", code).message + " (" + why_not_loaded() + ")"};
  }
  const char* call = nullptr;
  // Finds a kernel and loads it at once. The driver might otherwise load it at its first launch,
  // which then waits for running kernels, perhaps for one that in turn waits for the new one.
  const auto find = [&](const char* name, void** function) {
    call = "cuModuleGetFunction";
    const int code = driver_.function(function, module, name);
    if (code != kSuccess || !driver_.load_function) return code;
    call = "cuFuncLoad";
    return driver_.load_function(*function);
  };
  int code = find("weft_start", &start_);
  if (code == kSuccess) code = find("weft_wait", &wait_);
  if (code == kSuccess) code = find("weft_gather", &gather_);
  if (code == kSuccess) code = find("weft_await", &await_);
  for (std::size_t type = 0; type < kTypes && code == kSuccess; ++type) {
    code = find(kReductions[type], &reductions_[type]);
    if (code == kSuccess) code = find(kCombinations[type], &combinations_[type]);
  }
  if (code != kSuccess) return driver_.error(call, code);
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

Result<bool> Context::create_stream(Stream* stream) const {
  if (*stream) return true;
  const int code = driver_.create_stream(stream, kStreamNonBlocking);
  if (code == kSuccess) return true;
  *stream = nullptr;
  return driver_.error("cuStreamCreate", code);
}

// Returns a stream that belongs to Weft, since the user's stream may be in a stream capture.
Result<Stream> Context::own_stream() {
  if (const auto made = create_stream(&stream_); !made) return made.error();
  return stream_;
}

// Returns two streams for copies, one for each direction of the bus, so that both are used at the
// same time.
Result<CopyStreams> Context::copy_streams() {
  const std::lock_guard lock(mutex_);
  const OutsideCapture now(driver_);
  for (Stream* const one : {&copy_streams_.in, &copy_streams_.out}) {
    if (const auto made = create_stream(one); !made) return made.error();
  }
  return copy_streams_;
}

Result<bool> Context::more_channels() {
  const OutsideCapture now(driver_);
  auto pages = std::make_unique<FlagPages>();
  FlagPages* const memory = pages.get();
  const std::size_t sent_bytes = memory->all.size() * sizeof(std::uint64_t);
  Address sent = 0, seen = 0;
  if (const int code = driver_.allocate(&sent, sent_bytes); code != kSuccess) {
    return driver_.error("cuMemAlloc", code);
  }
  all_numbers_.push_back(sent);
  int code = driver_.register_memory(memory, sizeof *memory, kHostPortable | kHostMapped);
  if (code != kSuccess) return driver_.error("cuMemHostRegister", code);
  all_flags_.push_back(std::move(pages));
  const auto stream = own_stream();
  if (!stream) return stream.error();
  code = driver_.address_of(&seen, memory, 0);
  if (code == kSuccess) code = driver_.fill(sent, 0, sent_bytes, *stream);
  if (code == kSuccess) code = driver_.synchronise(*stream);
  if (code != kSuccess) return driver_.error("the first use of a device's flags", code);
  for (std::size_t i = 0; i < memory->all.size(); ++i) {
    auto* const flags = reinterpret_cast<HostFlags*>(seen) + i;
    auto* const number = reinterpret_cast<std::uint64_t*>(sent) + i;
    channels_.push_back({{number, &flags->ready, &flags->done}, &memory->all[i]});
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
    // A channel whose operation was given up is not reused, since no wait on it blocks any more.
    const std::uint64_t done = weft_device_load(&one.host->done);
    if (done == weft_device_load(&one.host->ready) && done != WEFT_GPU_GIVEN_UP)
      channels_.push_back(one);
  }
  if (pinned.memory) pinned_.emplace(pinned.bytes, pinned);
  if (event) events_.push_back(event);
}

}  // namespace weft::gpu
