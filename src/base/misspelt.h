// Finds environment variables that begin with WEFT_ but have no meaning for Weft, and suggests the
// most similar variable. WEFT_ROOT, WEFT_DIR and similar names are accepted, since module systems
// and CMake set them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Returns a message for the user if the environment variable is not one of Weft's; "" if it is, or
// if users do not set such a variable themselves.
std::string sentence_on_variable(std::string_view name);

// Returns the messages about all misspelt variables. environment: strings "NAME=VALUE", with
// nullptr at the end.
std::vector<std::string> misspelt_variables(const char* const* environment);

}  // namespace weft
