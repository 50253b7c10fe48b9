// Finds the driver of GPU memory that the process has loaded. Weft never loads one itself.
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/call/device_driver.h"

namespace weft {

// Finds out from the node's device files whether this process may use GPU memory at all. It must be
// called when the first call is planned.
void look_for_devices();
extern std::atomic<bool> device_memory_possible;
inline bool devices_possible() {
  return device_memory_possible.load(std::memory_order_relaxed);
}

// Returns whether the process has loaded a driver.
bool is_driver_loaded();

// Returns the driver for the GPU memory at this address; nullptr if the CPU can access the memory.
const DeviceDriver* driver_of(const std::byte* at);

}  // namespace weft
