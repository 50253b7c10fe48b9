// DeviceDriver: what Weft asks of CUDA's driver or of HIP's runtime, where the program has loaded
// one of them: Weft loads nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft {

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  // Memory of a device's that the processor cannot reach.
  virtual bool holds(const std::byte* at) const = 0;
  // From its memory and to it, on whatever thread. False: refused.
  virtual bool bring_in(std::byte* to, const std::byte* device, std::int64_t bytes) const = 0;
  virtual bool take_out(std::byte* device, const std::byte* from, std::int64_t bytes) const = 0;
};

// Whether there may be such memory in this process at all: by what the node has when the first call
// is planned.
void look_for_devices();
extern std::atomic<bool> device_memory_possible;
inline bool devices_possible() {
  return device_memory_possible.load(std::memory_order_relaxed);
}

// The one whose memory this is; nullptr: the processor reaches it.
const DeviceDriver* driver_of(const std::byte* at);

}  // namespace weft
