// Parses sizes as people write them: 4096, 64KiB, 2MB.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace weft {

// Returns the bytes. An error names the accepted units.
Result<std::int64_t> parse_size_bytes(const std::string& text);

}  // namespace weft
