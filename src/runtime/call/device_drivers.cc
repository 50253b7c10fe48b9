// Finds the driver that the process has loaded, if any, and asks it whose memory an address is.
#include "runtime/call/device_drivers.h"

#include <link.h>
#include <unistd.h>

#include <mutex>

#include "runtime/call/cuda_driver.h"
#include "runtime/call/hip_driver.h"
#include "runtime/call/loaded_library.h"

namespace weft {
namespace {

bool ask_the_system() {
  bool there = loaded_library(CudaDriver::kLibrary) || loaded_library(HipDriver::kLibrary);
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

const DeviceDriver* loaded_driver() {
  // The object is never destroyed, since threads may use it while the process exits.
  static auto* const loaded = new LoadedDriver;
  return loaded->get();
}

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

bool is_driver_loaded() {
  return loaded_driver() != nullptr;
}

const DeviceDriver* driver_of(const std::byte* at) {
  if (is_surely_the_processors(reinterpret_cast<std::uintptr_t>(at))) return nullptr;
  const DeviceDriver* const driver = loaded_driver();
  return driver && driver->holds(at) ? driver : nullptr;
}

}  // namespace weft
