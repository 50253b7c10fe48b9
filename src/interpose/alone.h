// A collective that stands alone in the node's memory, carried out to its end by the caller.
// Why not an Execution: nothing interrupts it and no transport takes part, so that it is one pass
// over the steps with nothing kept between them. A short call's time is made of such instructions.
#pragma once

#include "engine/progress.h"
#include "schedule/schedule.h"
#include "shm/node_windows.h"
#include "transport/operands.h"

namespace weft::interpose {

// schedule: one that stands_alone(), not a direct one. turn: where it has node_bytes. The caller
// helps whatever else is under way while it waits. False: ranks take part in different calls.
bool carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                     const NodeTurn& turn);

}  // namespace weft::interpose
