// Finds the MPI library that Weft wraps, even if it was loaded late (dlopen()).
#pragma once

#include "base/result.h"
#include "select/selector.h"

namespace weft {

// Looks up the MPI functions and handles that Weft itself needs. Returns an error that names the
// first missing one.
Result<bool> bind_library();

// Returns whether the application's completion calls (MPI_Wait, MPI_Test and their variants) reach
// Weft before any other PMPI tool. The advisor does not count, since it passes each call on.
bool first_in_chain();

// Returns which MPI implementation this is, according to its version string. bind_library() must be
// called before.
Library identify_library();
// Returns the name and version of the MPI library, such as "Open MPI v5.0.11".
std::string library_words();

}  // namespace weft
