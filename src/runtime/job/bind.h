// Finding the MPI library behind us, whenever and however it came into the process.
#pragma once

#include "base/result.h"
#include "select/selector.h"

namespace weft {

// Binds the calls that Weft itself makes and the handles it needs; an error names what is lacking.
Result<bool> bind_library();

// No other tool's completion calls come before Weft's, but the advisor's.
bool first_in_chain();

// Which implementation it is, by its own words; after bind_library().
Library identify_library();
// Its name and version, "Open MPI v5.0.11".
std::string library_words();

}  // namespace weft
