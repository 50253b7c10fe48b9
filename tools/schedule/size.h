// Sizes as people write them: 4096, 64KiB, 2MB.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace weft {

// The error names the units that are understood.
Result<std::int64_t> parse_size_bytes(const std::string& text);

}  // namespace weft
