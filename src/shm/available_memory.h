// How much memory could be used now without taking any from others: the system's and, where a batch
// system or container limits this process's, that of its control groups, whichever is less.
#pragma once

#include <cstdint>

namespace weft {

std::int64_t available_memory_bytes();

}  // namespace weft
