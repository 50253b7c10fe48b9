// Tells the kind of processor, as far as it determines the fastest way to move data.
#pragma once

#include <cstdint>

namespace weft {

enum class Processor : std::uint8_t { amd, other };

Processor processor();

}  // namespace weft
