#include "runtime/call/hip_driver.h"

#include <array>

#include "runtime/call/loaded_library.h"

namespace weft {
namespace {

// These constants are those of hip_runtime_api.h.
constexpr unsigned kNonBlocking = 1;
constexpr int kByAddress = 4;  // the value of hipMemcpyDefault
constexpr int kPerMajorVersion = 10'000'000;

}  // namespace

bool HipDriver::find_functions() {
  void* const library = loaded_library(kLibrary);
  int version = 0, (*version_of_runtime)(int*) = nullptr;
  const bool complete = library && find_function(library, "hipPointerGetAttributes", attributes_) &&
                        find_function(library, "hipMemcpyAsync", copy_) &&
                        find_function(library, "hipStreamCreateWithFlags", create_stream_) &&
                        find_function(library, "hipStreamSynchronize", synchronise_) &&
                        find_function(library, "hipGetDevice", current_device_) &&
                        find_function(library, "hipSetDevice", choose_device_) &&
                        find_function(library, "hipPeekAtLastError", look_at_error_) &&
                        find_function(library, "hipGetLastError", take_error_) &&
                        find_function(library, "hipRuntimeGetVersion", version_of_runtime);
  if (!complete || version_of_runtime(&version) != 0) return false;
  // Older versions of HIP lack this function.
  find_function(library, "hipThreadExchangeStreamCaptureMode", exchange_mode_);
  of_device_ = version / kPerMajorVersion < 6 ? 1 : 2;
  return true;
}

bool HipDriver::holds(const std::byte* at) const {
  const bool is_clean = look_at_error_() == 0;
  Attributes of{};
  if (attributes_(&of, at) == 0) return of.type == of_device_ && of.is_managed == 0;
  forget_error(is_clean);
  return false;
}

// Clears the error that a call of Weft's has left in HIP. was_clean: whether there was no error
// before that call; otherwise the error may be the application's and stays.
void HipDriver::forget_error(bool was_clean) const {
  if (was_clean) take_error_();
}

// Copies a part, and waits until it has arrived. Returns false if HIP refuses.
bool HipDriver::copy(Way way, const DevicePart& part) const {
  const OutsideCapture now(exchange_mode_);
  const bool is_clean = look_at_error_() == 0;
  std::byte* const to = way == Way::in ? part.host : part.device;
  const std::byte* const from = way == Way::in ? part.device : part.host;
  void* const stream = stream_beside(part.device);
  if (stream && copy_(to, from, static_cast<std::size_t>(part.bytes), kByAddress, stream) == 0 &&
      synchronise_(stream) == 0)
    return true;
  forget_error(is_clean);
  return false;
}

// Returns Weft's stream on the device that owns the memory; nullptr if it cannot be created.
void* HipDriver::stream_beside(const std::byte* device) const {
  Attributes of{};
  int before = 0;
  if (attributes_(&of, device) != 0 || current_device_(&before) != 0) return nullptr;
  if (choose_device_(of.device) != 0) return nullptr;
  void* const stream = stream_of_current(of.device);
  choose_device_(before);
  return stream;
}

void* HipDriver::stream_of_current(int device) const {
  const std::lock_guard lock(mutex_);
  void*& stream = streams_[device];
  if (!stream && create_stream_(&stream, kNonBlocking) != 0) stream = nullptr;
  return stream;
}

class HipDriver::Copies final : public DeviceCopies {
 public:
  explicit Copies(const HipDriver& driver) : driver_(driver) {}

  bool begin() override {
    ended_ = {};
    return true;
  }
  bool start(Way way, std::span<const DevicePart> parts) override {
    for (const DevicePart& part : parts)
      if (!driver_.copy(way, part)) return false;
    ++ended_[static_cast<std::size_t>(way)];
    return true;
  }
  std::optional<int> ended(Way way) override { return ended_[static_cast<std::size_t>(way)]; }
  bool wait() override { return true; }

 private:
  const HipDriver& driver_;
  std::array<int, kWays> ended_{};
};

std::unique_ptr<DeviceCopies> HipDriver::copies(const std::byte*) const {
  return std::make_unique<Copies>(*this);
}

}  // namespace weft
