// HipDriver: copies to and from GPU memory by HIP's runtime, which finds the device by the address.
// HIP keeps the error of a failed call until the application asks, so an error of Weft's own calls
// must be cleared. Copies go in streams of Weft's own, as with CUDA, but the calling thread waits
// for them, and host memory is not registered.
#pragma once

#include <map>
#include <mutex>

#include "runtime/call/device_driver.h"
#include "runtime/call/outside_capture.h"

namespace weft {

class HipDriver final : public DeviceDriver {
 public:
  static constexpr const char* kLibrary = "libamdhip64.so";

  // Finds the functions of the runtime that the process has loaded. Returns false if one is
  // missing.
  bool find_functions();

  bool holds(const std::byte* at) const override;
  std::unique_ptr<DeviceCopies> copies(const std::byte* device) const override;
  bool pins() const override { return false; }
  Pin pin(std::byte*, std::int64_t, const std::byte*) const override { return {}; }
  bool holds(const Pin&) const override { return false; }
  void unpin(std::byte*, const Pin&) const override {}

 private:
  class Copies;

  struct Attributes {
    int type, device;
    void *on_device, *on_host;
    int is_managed;
    unsigned flags;
  };

  bool copy(Way way, const DevicePart& part) const;
  void* stream_beside(const std::byte* device) const;
  void* stream_of_current(int device) const;
  void forget_error(bool was_clean) const;

  int (*attributes_)(Attributes* of, const void* address) = nullptr;
  int (*copy_)(void* to, const void* from, std::size_t bytes, int direction,
               void* stream) = nullptr;
  int (*create_stream_)(void** stream, unsigned flags) = nullptr;
  OutsideCapture::Exchange* exchange_mode_ = nullptr;
  int (*synchronise_)(void* stream) = nullptr;
  int (*current_device_)(int* device) = nullptr;
  int (*choose_device_)(int device) = nullptr;
  int (*look_at_error_)() = nullptr;
  int (*take_error_)() = nullptr;
  // The value of Attributes::type that means GPU memory; HIP 6 has changed it.
  int of_device_ = 0;

  mutable std::mutex mutex_;  // guards streams_
  // Weft's stream on each device, which is kept until the application ends.
  mutable std::map<int, void*> streams_;
};

}  // namespace weft
