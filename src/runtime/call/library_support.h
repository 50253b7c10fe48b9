// Finds out whether the MPI library accepts buffers in GPU memory.
#pragma once

#include "base/kind.h"

namespace weft {

// Returns whether the MPI library accepts GPU memory in all calls of this kind.
bool library_takes_device_memory(Kind kind);

// Returns whether calls of this kind that Weft leaves to the MPI library may have buffers in GPU
// memory which the library does not accept. The library then works on copies.
bool may_need_copies(Kind kind);

}  // namespace weft
