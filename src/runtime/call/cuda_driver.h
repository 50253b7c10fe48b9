// CudaDriver: copies to and from GPU memory by CUDA's driver, through the context that owns the
// memory. Copies go in streams of Weft's own. The default stream would wait for the application's
// streams, perhaps for a kernel that waits for this very collective, and would invalidate stream
// captures.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/call/device_driver.h"
#include "runtime/call/outside_capture.h"

namespace weft {

class CudaDriver final : public DeviceDriver {
 public:
  static constexpr const char* kLibrary = "libcuda.so";

  // Finds the functions of the driver that the process has loaded. Returns false if one is missing.
  bool find_functions();

  bool holds(const std::byte* at) const override;
  std::unique_ptr<DeviceCopies> copies(const std::byte* device) const override;
  bool pins() const override { return register_ != nullptr; }
  Pin pin(std::byte* memory, std::int64_t bytes, const std::byte* device) const override;
  bool holds(const Pin& pin) const override;
  void unpin(std::byte* memory, const Pin& pin) const override;

 private:
  class Copies;
  class Inside;

  // Context: a context of the driver's, by its handle and its number. After a reset of the device
  // another context may have the same handle.
  struct Context {
    void* handle = nullptr;
    unsigned long long id = 0;
    auto operator<=>(const Context&) const = default;
  };
  // Own: what Weft has made in a context, which is kept until the application ends.
  struct Own {
    std::array<void*, kWays> streams{};
    std::vector<void*> unused_events;
  };

  // Returns the context through which the memory is copied; an empty one if there is none.
  Context context_of(const std::byte* device) const;
  void* context_of_pool(const std::byte* device) const;
  bool exists(const Context& context) const;
  bool shares_managed_memory(const std::byte* at) const;
  void end_copies(const std::byte* device) const;
  // The next three functions work in the current context, which must be `context`. The first two
  // return nullptr if the driver refuses.
  void* stream(const Context& context, Way way) const;
  void* take_event(const Context& context) const;
  void give_back_event(const Context& context, void* event) const;
  // Returns whether a call has succeeded. Says once that copies fail.
  bool worked(int code) const;
  const char* name_of(int code) const;

  int (*attribute_)(void* value, int which, std::uintptr_t address) = nullptr;
  int (*set_attribute_)(const void* value, int which, std::uintptr_t address) = nullptr;
  int (*device_attribute_)(int* value, int which, int device) = nullptr;
  int (*copy_)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void* stream) = nullptr;
  int (*create_stream_)(void** stream, unsigned flags) = nullptr;
  int (*synchronise_)(void* stream) = nullptr;
  int (*create_event_)(void** event, unsigned flags) = nullptr;
  int (*record_)(void* event, void* stream) = nullptr;
  int (*query_)(void* event) = nullptr;
  OutsideCapture::Exchange* exchange_mode_ = nullptr;
  int (*push_context_)(void* context) = nullptr;
  int (*pop_context_)(void** context) = nullptr;
  int (*retain_context_)(void** context, int device) = nullptr;
  int (*context_id_)(void* context, unsigned long long* id) = nullptr;
  int (*register_)(void* memory, std::size_t bytes, unsigned flags) = nullptr;
  int (*unregister_)(void* memory) = nullptr;
  int (*error_name_)(int code, const char** name) = nullptr;

  mutable std::mutex mutex_;  // guards own_
  mutable std::map<Context, Own> own_;
};

}  // namespace weft
