// Processor: the kind of processor, as far as it decides how data are best moved.
#pragma once

#include <cstdint>

namespace weft {

enum class Processor : std::uint8_t { amd, other };

Processor processor();

}  // namespace weft
