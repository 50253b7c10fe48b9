// Variables whose names come close to one of Weft's, which the user has meant.
// Why only these: WEFT_ROOT and the like are module systems' and CMake's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The variable of Weft's that this name is likely to stand for; empty: it is one of Weft's, or like
// none of them.
std::string meant_by(std::string_view name);

// A sentence for each such variable among "NAME=VALUE"..., nullptr.
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace weft
