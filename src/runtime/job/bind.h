// Finds the MPI library behind Weft, whenever and however it was loaded.
#pragma once

#include "base/result.h"
#include "select/selector.h"

namespace weft {

// Binds the calls and handles that Weft itself needs; an error names what is missing.
Result<bool> bind_library();

// Returns whether no other tool's completion calls precede Weft's, except the advisor's.
bool first_in_chain();

// Returns the implementation, as its version string names it. Must follow bind_library().
Library identify_library();
// Returns its name and version, such as "Open MPI v5.0.11".
std::string library_words();

}  // namespace weft
