// Returns how much memory can be used now without taking any from other processes: the less of the
// system's and that of this process's control groups, if a batch system or container limits it.
#pragma once

#include <cstdint>

namespace weft {

std::int64_t available_memory_bytes();

}  // namespace weft
