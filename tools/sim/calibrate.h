// What of a machine can be measured without MPI: copies, reductions, caches and the kernel's
// switches.
#pragma once

#include "base/result.h"
#include "sim/machine.h"

namespace weft::sim {

// Takes a few seconds. What it cannot measure keeps the value of `machine`.
Result<bool> calibrate(Machine& machine);

}  // namespace weft::sim
