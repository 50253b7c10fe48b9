// Returns how much memory can be used now without taking any from other processes: the minimum of
// the system's and, if a batch system or container limits it, that of this process's control
// groups.
#pragma once

#include <cstdint>

namespace weft {

std::int64_t available_memory_bytes();

}  // namespace weft
