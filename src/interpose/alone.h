// A collective that stands alone in the node's memory, carried out to its end by the caller.
#pragma once

#include "engine/progress.h"
#include "transport/transport.h"

namespace weft::interpose {

// schedule: one that stands_alone(). The caller helps whatever else is under way while it waits.
// An error: ranks take part in different calls.
Result<bool> carry_out_alone(Progress& progress, const Schedule& schedule, const Operands& operands,
                             const NodeTurn& turn);

}  // namespace weft::interpose
