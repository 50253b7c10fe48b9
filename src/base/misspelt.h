// Variables that begin with WEFT_ and that nothing reads, with the one of Weft's that comes
// closest. WEFT_ROOT and the like pass: they are module systems' and CMake's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The sentence about a variable of that name; empty: nothing, since it is one of Weft's or no
// business of its.
std::string sentence_on_variable(std::string_view name);

// A sentence for each such variable among "NAME=VALUE"..., nullptr.
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace weft
