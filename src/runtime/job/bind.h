// Finds the MPI library that Weft wraps, whenever and however it was loaded.
#pragma once

#include "base/result.h"
#include "select/selector.h"

namespace weft {

// Binds the calls and handles that Weft itself needs. Returns an error that names a missing one.
Result<bool> bind_library();

// Returns whether Weft's completion calls come first in the symbol search order, with no other tool
// before them except the advisor.
bool first_in_chain();

// Returns the MPI implementation, according to its version string. Must follow bind_library().
Library identify_library();
// Returns the MPI library's name and version, such as "Open MPI v5.0.11".
std::string library_words();

}  // namespace weft
