// Returns how many bytes of memory can be used now without taking any from other processes. Besides
// the system's available memory, the limits of this process's control groups count, which a batch
// system or a container may set.
#pragma once

#include <cstdint>

namespace weft {

std::int64_t available_memory_bytes();

}  // namespace weft
