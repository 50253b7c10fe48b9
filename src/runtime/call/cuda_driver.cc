#include "runtime/call/cuda_driver.h"

#include <atomic>
#include <deque>
#include <string>

#include "base/log.h"
#include "runtime/call/loaded_library.h"

namespace weft {
namespace {

// These constants are those of cuda.h.
constexpr int kSuccess = 0, kNotReady = 600, kContextIsDestroyed = 709;
constexpr int kContext = 1, kMemoryType = 2, kSyncMemops = 6, kIsManaged = 8, kDevice = 9;
constexpr unsigned kOfDevice = 2, kNonBlocking = 1, kWithoutTiming = 2, kPortable = 1;
// Attribute of a device: whether the host may access managed memory while kernels run.
constexpr int kSharesManagedMemory = 89;

std::uintptr_t number(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

bool CudaDriver::find_functions() {
  void* const library = loaded_library(kLibrary);
  if (!library) return false;
  // Drivers before CUDA 10.1, 12 and 11 lack these functions, in this order, and some lack others.
  find_function(library, "cuThreadExchangeStreamCaptureMode", exchange_mode_);
  find_function(library, "cuCtxGetId", context_id_);
  find_function(library, "cuPointerSetAttribute", set_attribute_);
  find_function(library, "cuGetErrorName", error_name_);
  const bool can_pin = find_function(library, "cuMemHostRegister_v2", register_) &&
                       find_function(library, "cuMemHostUnregister", unregister_);
  if (!can_pin) register_ = nullptr;
  return find_function(library, "cuPointerGetAttribute", attribute_) &&
         find_function(library, "cuDeviceGetAttribute", device_attribute_) &&
         find_function(library, "cuMemcpyAsync", copy_) &&
         find_function(library, "cuStreamCreate", create_stream_) &&
         find_function(library, "cuStreamSynchronize", synchronise_) &&
         find_function(library, "cuEventCreate", create_event_) &&
         find_function(library, "cuEventRecord", record_) &&
         find_function(library, "cuEventQuery", query_) &&
         find_function(library, "cuCtxPushCurrent_v2", push_context_) &&
         find_function(library, "cuCtxPopCurrent_v2", pop_context_) &&
         find_function(library, "cuDevicePrimaryCtxRetain", retain_context_);
}

bool CudaDriver::holds(const std::byte* at) const {
  unsigned type = 0, managed = 0;
  if (attribute_(&type, kMemoryType, number(at)) != kSuccess || type != kOfDevice) return false;
  if (attribute_(&managed, kIsManaged, number(at)) != kSuccess || managed == 0) return true;
  return !shares_managed_memory(at);
}

bool CudaDriver::shares_managed_memory(const std::byte* at) const {
  int device = 0, shares = 0;
  return attribute_(&device, kDevice, number(at)) == kSuccess &&
         device_attribute_(&shares, kSharesManagedMemory, device) == kSuccess && shares != 0;
}

CudaDriver::Context CudaDriver::context_of(const std::byte* device) const {
  const OutsideCapture now(exchange_mode_);
  Context found;
  attribute_(&found.handle, kContext, number(device));
  if (!found.handle) found.handle = context_of_pool(device);
  if (found.handle && context_id_ && context_id_(found.handle, &found.id) != kSuccess) return {};
  return found;
}

// Returns a context for memory from a pool (cudaMallocAsync()), which belongs to a device but to no
// context; nullptr if there is none. The context is retained until the process ends.
void* CudaDriver::context_of_pool(const std::byte* device) const {
  int found = -1;
  void* context = nullptr;
  if (attribute_(&found, kDevice, number(device)) == kSuccess && found >= 0)
    retain_context_(&context, found);
  return context;
}

// Returns whether the context was not destroyed. Without cuCtxGetId that cannot be found out.
bool CudaDriver::exists(const Context& context) const {
  unsigned long long id = context.id;
  const bool is_known = !context_id_ || context_id_(context.handle, &id) == kSuccess;
  return context.handle && is_known && id == context.id;
}

// Waits for copies and fills by the application that seem to be synchronous but may still be in
// progress, such as cudaMemset(); Weft's streams do not wait for them. Makes later ones on this
// memory synchronous.
void CudaDriver::end_copies(const std::byte* device) const {
  const unsigned on = 1;
  if (set_attribute_) set_attribute_(&on, kSyncMemops, number(device));
}

void* CudaDriver::stream(const Context& context, Way way) const {
  const std::lock_guard lock(mutex_);
  void*& stream = own_[context].streams[static_cast<std::size_t>(way)];
  if (!stream && !worked(create_stream_(&stream, kNonBlocking))) stream = nullptr;
  return stream;
}

void* CudaDriver::take_event(const Context& context) const {
  const std::lock_guard lock(mutex_);
  auto& unused = own_[context].unused_events;
  void* event = nullptr;
  if (unused.empty()) return worked(create_event_(&event, kWithoutTiming)) ? event : nullptr;
  event = unused.back();
  unused.pop_back();
  return event;
}

void CudaDriver::give_back_event(const Context& context, void* event) const {
  const std::lock_guard lock(mutex_);
  own_[context].unused_events.push_back(event);
}

const char* CudaDriver::name_of(int code) const {
  const char* name = nullptr;
  return error_name_ && error_name_(code, &name) == kSuccess && name ? name : "an unknown error";
}

bool CudaDriver::worked(int code) const {
  if (code == kSuccess) return true;
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true))
    say(std::string("CUDA refuses to copy the data of a collective in GPU memory (") +
        name_of(code) + "): the call returns an error");
  return false;
}

// Inside: while this object lives, the context is current on the calling thread, which may make
// calls that a capture forbids.
class CudaDriver::Inside {
 public:
  Inside(const CudaDriver& driver, const Context& context)
      : driver_(driver),
        outside_(driver.exchange_mode_),
        code_(driver.exists(context) ? driver.push_context_(context.handle) : kContextIsDestroyed) {
  }
  ~Inside() {
    void* popped = nullptr;
    if (code_ == kSuccess) driver_.pop_context_(&popped);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  int code() const { return code_; }  // kSuccess if the context is current

 private:
  const CudaDriver& driver_;
  const OutsideCapture outside_;
  const int code_;
};

class CudaDriver::Copies final : public DeviceCopies {
 public:
  Copies(const CudaDriver& driver, const std::byte* device, const Context& context)
      : driver_(driver), device_(device), context_(context) {}
  ~Copies() override { Copies::wait(); }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  bool begin() override {
    ended_ = {};
    const Inside now(driver_, context_);
    if (!driver_.worked(now.code())) return false;
    driver_.end_copies(device_);
    return true;
  }
  bool start(Way way, std::span<const DevicePart> parts) override;
  std::optional<int> ended(Way way) override;
  bool wait() override;

 private:
  void end_first(std::size_t way) {
    driver_.give_back_event(context_, pending_[way].front());
    pending_[way].pop_front();
    ++ended_[way];
  }

  const CudaDriver& driver_;
  const std::byte* const device_;
  const Context context_;
  std::array<std::deque<void*>, kWays> pending_{};  // an event for each group that has not ended
  std::array<int, kWays> ended_{};
};

bool CudaDriver::Copies::start(Way way, std::span<const DevicePart> parts) {
  const Inside now(driver_, context_);
  if (!driver_.worked(now.code())) return false;
  void* const stream = driver_.stream(context_, way);
  void* const event = stream ? driver_.take_event(context_) : nullptr;
  if (!event) return false;
  int code = kSuccess;
  for (const DevicePart& part : parts) {
    const std::uintptr_t device = number(part.device), host = number(part.host);
    const bool comes = way == Way::in;
    if (code == kSuccess)
      code = driver_.copy_(comes ? host : device, comes ? device : host,
                           static_cast<std::size_t>(part.bytes), stream);
  }
  // Earlier parts of the group may be under way even if a later one was refused.
  const int recorded = driver_.record_(event, stream);
  if (recorded == kSuccess)
    pending_[static_cast<std::size_t>(way)].push_back(event);
  else
    driver_.give_back_event(context_, event);
  return driver_.worked(code) && driver_.worked(recorded);
}

std::optional<int> CudaDriver::Copies::ended(Way way) {
  const auto at = static_cast<std::size_t>(way);
  if (pending_[at].empty()) return ended_[at];
  const Inside now(driver_, context_);
  int code = now.code();
  while (code == kSuccess && !pending_[at].empty()) {
    code = driver_.query_(pending_[at].front());
    if (code == kSuccess) end_first(at);
  }
  if (code != kNotReady && !driver_.worked(code)) return std::nullopt;
  return ended_[at];
}

bool CudaDriver::Copies::wait() {
  if (pending_[0].empty() && pending_[1].empty()) return true;
  const Inside now(driver_, context_);
  int code = now.code();
  if (code != kSuccess) {
    // The context was destroyed, and its events with it.
    for (auto& of_way : pending_) of_way.clear();
    return driver_.worked(code);
  }
  for (std::size_t way = 0; way < kWays; ++way) {
    if (pending_[way].empty()) continue;
    const int ended = driver_.synchronise_(driver_.stream(context_, static_cast<Way>(way)));
    if (code == kSuccess) code = ended;
    while (!pending_[way].empty()) end_first(way);
  }
  return driver_.worked(code);
}

std::unique_ptr<DeviceCopies> CudaDriver::copies(const std::byte* device) const {
  const Context context = context_of(device);
  if (!context.handle && !worked(kContextIsDestroyed)) return nullptr;
  return std::make_unique<Copies>(*this, device, context);
}

Pin CudaDriver::pin(std::byte* memory, std::int64_t bytes, const std::byte* device) const {
  const Context context = context_of(device);
  const Inside now(*this, context);
  int code = now.code();
  if (code == kSuccess) code = register_(memory, static_cast<std::size_t>(bytes), kPortable);
  return code == kSuccess ? Pin{context.handle, context.id} : Pin{};
}

bool CudaDriver::holds(const Pin& pin) const {
  return exists({pin.context, pin.id});
}

void CudaDriver::unpin(std::byte* memory, const Pin& pin) const {
  const Inside now(*this, {pin.context, pin.id});
  if (now.code() == kSuccess) unregister_(memory);
}

}  // namespace weft
