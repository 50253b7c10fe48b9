// Finds variables that begin with WEFT_ and that nothing reads, and the most similar one of Weft's.
// WEFT_ROOT and the like are skipped: they belong to module systems and CMake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Returns the sentence about a variable of that name; empty if it is Weft's, or none of Weft's
// business.
std::string sentence_on_variable(std::string_view name);

// Returns a sentence for each such variable among "NAME=VALUE"..., nullptr.
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace weft
