// Finds environment variables that begin with WEFT_ but that nothing reads, and suggests the most
// similar variable of Weft. WEFT_ROOT and similar names are skipped, since module systems and CMake
// set them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Returns the sentence for the user about a variable of that name; empty if it is a variable of
// Weft or is skipped.
std::string sentence_on_variable(std::string_view name);

// Returns the sentences about misspelt variables. environment: strings "NAME=VALUE", ended by
// nullptr.
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace weft
