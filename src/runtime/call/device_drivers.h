// DeviceDriver: queries and copies by CUDA's driver or HIP's runtime, if the program has loaded one
// of them. Weft loads neither.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft {

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  // Returns whether the address is in device memory that the processor cannot access.
  virtual bool holds(const std::byte* at) const = 0;
  // Copy from device memory, and to it, on any thread. They return true on success, false if the
  // driver refuses.
  virtual bool bring_in(std::byte* to, const std::byte* device, std::int64_t bytes) const = 0;
  virtual bool take_out(std::byte* device, const std::byte* from, std::int64_t bytes) const = 0;
};

// look_for_devices(): determines from the node's devices whether this process may have device
// memory, when the first call is planned.
void look_for_devices();
extern std::atomic<bool> device_memory_possible;
inline bool devices_possible() {
  return device_memory_possible.load(std::memory_order_relaxed);
}

// Returns the driver of the device memory at this address; nullptr if the processor can access it.
const DeviceDriver* driver_of(const std::byte* at);

}  // namespace weft
