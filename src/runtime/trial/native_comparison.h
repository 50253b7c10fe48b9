// Native comparison: measures Weft's variant of a call in the node's shared memory against the MPI
// library's own collective, which carries the call out unless Weft is faster. The result is stored
// with the plans for each machine: it depends on processor, system and library (a library that
// moves long blocks in a single copy beats two copies on some machines only).
#pragma once

#include "runtime/trial/internal_collective.h"
#include "schedule/schedule.h"

namespace weft {

// Tells how the library is measured: by its blocking call, or by a start and a wait.
enum class LibraryForm : std::uint8_t { blocking, nonblocking };

// Returns whether Weft carries the call out, because it is faster than the library; the result is
// equal on all ranks. Collective; waits for all ranks like a blocking collective. schedule: the
// call's schedule, on a single node.
bool is_won(Runtime& runtime, InternalCollective& internal_collective, const Call& call,
            const Schedule& schedule, Kernel kernel, LibraryForm form);

// Returns whether the ranks may compare: all know the size, the user has not chosen an algorithm, a
// blocking library call may be made, and no variant without a copy is expected. The result is equal
// on all ranks.
bool may_be_compared(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                     Kernel kernel, bool tries_direct);

}  // namespace weft
