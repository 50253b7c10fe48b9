// Implements copies to and from GPU memory by CUDA and HIP. CUDA copies through the context that
// owns the memory. HIP finds the device by the address. HIP also keeps the error of a failed call
// until the application asks, so an error of Weft's own calls must be cleared. Both copy in streams
// of Weft's own. The default stream would wait for the application's streams, perhaps for a kernel
// that waits for this very collective, and would invalidate stream captures.
#include "runtime/call/device_drivers.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace weft {
namespace {

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

// Returns the library of this file name, of any version, if the process has loaded it; otherwise
// nullptr. dlopen() is not used, since it would search the file system.
void* loaded(const char* name) {
  struct Search {
    const char* name;
    std::string path;
  } search{name, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* one, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const char* const slash = std::strrchr(one->dlpi_name, '/');
        const std::string_view file = slash ? slash + 1 : one->dlpi_name;
        if (!file.starts_with(wanted.name)) return 0;
        wanted.path = one->dlpi_name;
        return 1;
      },
      &search);
  return search.path.empty() ? nullptr : dlopen(search.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

// These constants are those of cuda.h and hip_runtime_api.h.
constexpr unsigned kNonBlocking = 1;
constexpr int kRelaxed = 2;

// Holds Weft's own streams, one for each context or device. They are kept until the application
// ends.
class OwnStreams {
 public:
  using Create = int(void** stream, unsigned flags);

  // Returns the stream for `owner`, the current context or device, after creating it if necessary.
  // Returns nullptr if that fails.
  void* get(void* owner, Create* create) const {
    const std::lock_guard lock(mutex_);
    void*& stream = all_[owner];
    if (!stream && create(&stream, kNonBlocking) != 0) stream = nullptr;
    return stream;
  }

 private:
  mutable std::mutex mutex_;  // guards all_
  mutable std::map<void*, void*> all_;
};

// While this object lives, the calling thread may make calls that an ongoing stream capture
// forbids.
class OutsideCapture {
 public:
  using Exchange = int(int* mode);

  explicit OutsideCapture(Exchange* exchange) : exchange_(exchange) {
    if (exchange_) exchange_(&mode_);
  }
  ~OutsideCapture() {
    if (exchange_) exchange_(&mode_);
  }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  Exchange* const exchange_;
  int mode_ = kRelaxed;
};

constexpr const char* kCuda = "libcuda.so";

class CudaDriver final : public DeviceDriver {
 public:
  // Finds the functions of CUDA's driver. Returns false if one is missing.
  bool find_functions() {
    void* const library = loaded(kCuda);
    return library && find(library, "cuPointerGetAttribute", attribute_) &&
           find(library, "cuMemcpyAsync", copy_) &&
           find(library, "cuStreamCreate", create_stream_) &&
           find(library, "cuThreadExchangeStreamCaptureMode", exchange_mode_) &&
           find(library, "cuCtxPushCurrent_v2", push_context_) &&
           find(library, "cuCtxPopCurrent_v2", pop_context_) &&
           find(library, "cuDevicePrimaryCtxRetain", retain_context_) &&
           find(library, "cuStreamSynchronize", synchronise_) && find_optional(library);
  }

  bool holds(const std::byte* at) const override {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    unsigned type = 0, managed = 0;
    if (attribute_(&type, kMemoryType, address) != 0 || type != kOfDevice) return false;
    return attribute_(&managed, kIsManaged, address) != 0 || managed == 0;
  }

  bool bring_in(std::byte* to, const std::byte* device, std::int64_t bytes) const override {
    return copy(to, device, bytes, device);
  }
  bool take_out(std::byte* device, const std::byte* from, std::int64_t bytes) const override {
    return copy(device, from, bytes, device);
  }

 private:
  // These constants are those of cuda.h.
  static constexpr int kContext = 1, kMemoryType = 2, kSyncMemops = 6, kIsManaged = 8, kDevice = 9;
  static constexpr unsigned kOfDevice = 2;

  bool find_optional(void* library) {
    find(library, "cuPointerSetAttribute", set_attribute_);
    return true;
  }

  // Waits for copies and fills by the application that seem to be synchronous but may still be in
  // progress, such as cudaMemset(); Weft's stream does not wait for them. Makes later ones on this
  // memory synchronous.
  void end_copies(const std::byte* device) const {
    const unsigned on = 1;
    if (set_attribute_) set_attribute_(&on, kSyncMemops, reinterpret_cast<std::uintptr_t>(device));
  }

  bool copy(std::byte* to, const std::byte* from, std::int64_t bytes,
            const std::byte* device) const {
    const OutsideCapture now(exchange_mode_);
    void *context = nullptr, *popped = nullptr;
    attribute_(&context, kContext, reinterpret_cast<std::uintptr_t>(device));
    if (!context) context = context_of_pool(device);
    if (!context || push_context_(context) != 0) return false;
    end_copies(device);
    void* const stream = streams_.get(context, create_stream_);
    const bool has_come =
        stream &&
        copy_(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from),
              static_cast<std::size_t>(bytes), stream) == 0 &&
        synchronise_(stream) == 0;
    pop_context_(&popped);
    return has_come;
  }

  // Returns a context for memory from a pool (cudaMallocAsync()), which belongs to a device but to
  // no context; nullptr if there is none. The context is retained until the process ends.
  void* context_of_pool(const std::byte* device) const {
    int number = -1;
    void* context = nullptr;
    if (attribute_(&number, kDevice, reinterpret_cast<std::uintptr_t>(device)) == 0 && number >= 0)
      retain_context_(&context, number);
    return context;
  }

  int (*attribute_)(void* value, int which, std::uintptr_t address) = nullptr;
  int (*set_attribute_)(const void* value, int which, std::uintptr_t address) = nullptr;
  int (*copy_)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void* stream) = nullptr;
  OwnStreams::Create* create_stream_ = nullptr;
  OutsideCapture::Exchange* exchange_mode_ = nullptr;
  int (*push_context_)(void* context) = nullptr;
  int (*pop_context_)(void** context) = nullptr;
  int (*retain_context_)(void** context, int device) = nullptr;
  int (*synchronise_)(void* stream) = nullptr;
  OwnStreams streams_;
};

constexpr const char* kHip = "libamdhip64.so";

class HipDriver final : public DeviceDriver {
 public:
  bool find_functions() {
    void* const library = loaded(kHip);
    int version = 0, (*version_of_runtime)(int*) = nullptr;
    const bool complete = library && find(library, "hipPointerGetAttributes", attributes_) &&
                          find(library, "hipMemcpyAsync", copy_) &&
                          find(library, "hipStreamCreateWithFlags", create_stream_) &&
                          find(library, "hipStreamSynchronize", synchronise_) &&
                          find(library, "hipGetDevice", current_device_) &&
                          find(library, "hipSetDevice", choose_device_) &&
                          find(library, "hipPeekAtLastError", look_at_error_) &&
                          find(library, "hipGetLastError", take_error_) &&
                          find(library, "hipRuntimeGetVersion", version_of_runtime);
    if (!complete || version_of_runtime(&version) != 0) return false;
    // Older versions of HIP lack this function.
    find(library, "hipThreadExchangeStreamCaptureMode", exchange_mode_);
    of_device_ = version / kPerMajorVersion < 6 ? 1 : 2;
    return true;
  }

  bool holds(const std::byte* at) const override {
    const bool is_clean = look_at_error_() == 0;
    Attributes of{};
    if (attributes_(&of, at) == 0) return of.type == of_device_ && of.is_managed == 0;
    forget_error(is_clean);
    return false;
  }

  bool bring_in(std::byte* to, const std::byte* device, std::int64_t bytes) const override {
    return copy(to, device, bytes, device);
  }
  bool take_out(std::byte* device, const std::byte* from, std::int64_t bytes) const override {
    return copy(device, from, bytes, device);
  }

 private:
  // These constants are those of hip_runtime_api.h.
  static constexpr int kByAddress = 4;  // the value of hipMemcpyDefault
  static constexpr int kPerMajorVersion = 10'000'000;
  struct Attributes {
    int type, device;
    void *on_device, *on_host;
    int is_managed;
    unsigned flags;
  };

  bool copy(std::byte* to, const std::byte* from, std::int64_t bytes,
            const std::byte* device) const {
    const OutsideCapture now(exchange_mode_);
    const bool is_clean = look_at_error_() == 0;
    void* const stream = stream_beside(device);
    if (stream && copy_(to, from, static_cast<std::size_t>(bytes), kByAddress, stream) == 0 &&
        synchronise_(stream) == 0)
      return true;
    forget_error(is_clean);
    return false;
  }
  // Returns Weft's stream on the device that owns the memory; nullptr if it cannot be created.
  void* stream_beside(const std::byte* device) const {
    Attributes of{};
    int before = 0;
    if (attributes_(&of, device) != 0 || current_device_(&before) != 0) return nullptr;
    if (choose_device_(of.device) != 0) return nullptr;
    auto* const owner = reinterpret_cast<void*>(static_cast<std::intptr_t>(of.device));
    void* const stream = streams_.get(owner, create_stream_);
    choose_device_(before);
    return stream;
  }
  // Clears the error that a call of Weft's has left in HIP. was_clean: whether there was no error
  // before that call; otherwise the error may be the application's and stays.
  void forget_error(bool was_clean) const {
    if (was_clean) take_error_();
  }

  int (*attributes_)(Attributes* of, const void* address) = nullptr;
  int (*copy_)(void* to, const void* from, std::size_t bytes, int direction,
               void* stream) = nullptr;
  OwnStreams::Create* create_stream_ = nullptr;
  OutsideCapture::Exchange* exchange_mode_ = nullptr;
  int (*synchronise_)(void* stream) = nullptr;
  int (*current_device_)(int* device) = nullptr;
  int (*choose_device_)(int device) = nullptr;
  int (*look_at_error_)() = nullptr;
  int (*take_error_)() = nullptr;
  // The value of Attributes::type that means GPU memory; HIP 6 has changed it.
  int of_device_ = 0;
  OwnStreams streams_;
};

bool ask_the_system() {
  bool there = loaded(kCuda) || loaded(kHip);
  for (const char* node :
       {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvhost-gpu", "/dev/dxg", "/dev/kfd"})
    there = there || access(node, F_OK) == 0;
  return there;
}

// Returns how many libraries the process has loaded in its life. As long as this number does not
// change, no driver has been loaded.
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

// Finds the driver that the process has loaded. It looks again after each loading of a library,
// until a driver is found. Programs use the GPUs of only one vendor.
class LoadedDriver {
 public:
  // Returns the driver; nullptr if the process has loaded none.
  const DeviceDriver* get() {
    if (const DeviceDriver* there = found_.load(std::memory_order_acquire)) return there;
    const unsigned long long now = loads();
    if (looked_at_.load(std::memory_order_relaxed) == now) return nullptr;
    const std::lock_guard lock(one_at_a_time_);
    if (!found_.load() && cuda_.find_functions()) found_.store(&cuda_);
    if (!found_.load() && hip_.find_functions()) found_.store(&hip_);
    looked_at_.store(now, std::memory_order_relaxed);
    return found_.load();
  }

 private:
  std::mutex one_at_a_time_;  // guards cuda_ and hip_ until a driver is found
  CudaDriver cuda_;
  HipDriver hip_;
  std::atomic<const DeviceDriver*> found_{nullptr};
  std::atomic<unsigned long long> looked_at_{0};
};

// Returns whether the address lies in the program's static data or in the heap behind it, where
// most short buffers are. This check is faster than asking the driver.
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

}  // namespace

constinit std::atomic<bool> device_memory_possible{false};

void look_for_devices() {
  [[maybe_unused]] static const bool done = (device_memory_possible.store(ask_the_system()), true);
}

const DeviceDriver* driver_of(const std::byte* at) {
  // The object is never destroyed, since threads may use it while the process exits.
  static auto* const loaded = new LoadedDriver;
  if (is_surely_the_processors(reinterpret_cast<std::uintptr_t>(at))) return nullptr;
  const DeviceDriver* const driver = loaded->get();
  return driver && driver->holds(at) ? driver : nullptr;
}

}  // namespace weft
