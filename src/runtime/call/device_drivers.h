// DeviceDriver recognises GPU memory and copies it, by CUDA's driver or HIP's runtime. It uses the
// one that the program has loaded, and never loads one itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft {

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  // Returns whether the address lies in GPU memory that the CPU cannot access.
  virtual bool holds(const std::byte* at) const = 0;
  // bring_in() copies from GPU memory, take_out() copies to it; both work on any thread. They
  // return false if the driver refuses.
  virtual bool bring_in(std::byte* to, const std::byte* device, std::int64_t bytes) const = 0;
  virtual bool take_out(std::byte* device, const std::byte* from, std::int64_t bytes) const = 0;
};

// Finds out from the node's device files whether this process may use GPU memory at all. It must be
// called when the first call is planned.
void look_for_devices();
extern std::atomic<bool> device_memory_possible;
inline bool devices_possible() {
  return device_memory_possible.load(std::memory_order_relaxed);
}

// Returns the driver for the GPU memory at this address; nullptr if the CPU can access the memory.
const DeviceDriver* driver_of(const std::byte* at);

}  // namespace weft
