// DeviceDriver: Weft's questions to CUDA's driver or HIP's runtime, if the program has loaded one
// of them; Weft loads nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft {

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  // Returns whether the address is in device memory that the processor cannot reach.
  virtual bool holds(const std::byte* at) const = 0;
  // Copy from device memory and to it, on any thread. Return false if the driver refuses.
  virtual bool bring_in(std::byte* to, const std::byte* device, std::int64_t bytes) const = 0;
  virtual bool take_out(std::byte* device, const std::byte* from, std::int64_t bytes) const = 0;
};

// Finds out whether there may be such memory in this process, by the node's devices, when the first
// call is planned.
void look_for_devices();
extern std::atomic<bool> device_memory_possible;
inline bool devices_possible() {
  return device_memory_possible.load(std::memory_order_relaxed);
}

// Returns the driver to whom the memory belongs; nullptr if the processor reaches it.
const DeviceDriver* driver_of(const std::byte* at);

}  // namespace weft
