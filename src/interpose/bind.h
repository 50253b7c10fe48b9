// Finding the MPI library behind us, whenever and however it came into the process.
#pragma once

#include "base/result.h"
#include "select/selector.h"

namespace weft::interpose {

// Binds the calls that Weft itself makes and the handles it needs. An error says what is wrong:
// another MPI family than this library was built for, or a call that the MPI library lacks.
Result<bool> bind_library();

// Which implementation it is, by its own words; after bind_library().
Library identify_library();

}  // namespace weft::interpose
