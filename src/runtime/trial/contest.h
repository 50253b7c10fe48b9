// Contest: Weft's way of a call in the node's memory against the MPI library's own, which keeps the
// call where it is as fast. Why measured: which of the two it is depends on processor, system and
// library (a library that moves long blocks in one copy beats two copies on one machine and not on
// the next); once for each machine, and kept with the plans.
#pragma once

#include "runtime/start/plans.h"
#include "runtime/trial/meeting.h"

namespace weft {

// What the library is measured by: its blocking call, or a start and a wait.
enum class Rival : std::uint8_t { blocking, nonblocking };

// Collective, waits for all ranks like a blocking collective; the same on all ranks. False: the
// call is the library's. schedule: of the call, on one node.
bool is_won(Runtime& runtime, Meeting& meeting, const Call& call, const Schedule& schedule,
            Kernel kernel, Rival rival);

// Whether there is anything to measure: all ranks know alike what the call moves, the user has not
// chosen, a blocking call of the library's may be made, and no way without a copy is to be
// expected. The same on all ranks.
bool may_be_contested(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                      Kernel kernel, bool tries_direct);

}  // namespace weft
