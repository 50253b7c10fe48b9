// Processor: the kind of processor, as far as it determines how data are best moved.
#pragma once

#include <cstdint>

namespace weft {

enum class Processor : std::uint8_t { amd, other };

Processor processor();

}  // namespace weft
