// Native comparison: compares Weft's variant of a call in the node's memory with the MPI library's,
// which keeps the call unless Weft's is faster. It is measured, once for each machine, and kept
// with the plans: the faster one depends on processor, system and library (one that moves long
// blocks in one copy beats two copies on some machines only).
#pragma once

#include "runtime/trial/internal_collective.h"
#include "schedule/schedule.h"

namespace weft {

// Says how the library is measured: by its blocking call, or by a start and a wait.
enum class LibraryForm : std::uint8_t { blocking, nonblocking };

// Collective; waits for all ranks like a blocking collective. Returns false, on all ranks alike, if
// the call is the library's. schedule: the call's, on one node.
bool is_won(Runtime& runtime, InternalCollective& internal_collective, const Call& call,
            const Schedule& schedule, Kernel kernel, LibraryForm form);

// Returns whether there is anything to measure: all ranks know the size, the user has not chosen, a
// blocking call of the library's may be made, and no variant without a copy is expected. The answer
// is the same on all ranks.
bool may_be_compared(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                     Kernel kernel, bool tries_direct);

}  // namespace weft
