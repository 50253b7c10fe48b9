// Measures the parameters of a machine that need no MPI: copies, reductions, caches and the
// kernel's switches.
#pragma once

#include "base/result.h"
#include "sim/machine.h"

namespace weft::sim {

// Fills `machine` within a few seconds. Parameters that it cannot measure keep their values.
Result<bool> calibrate(Machine& machine);

}  // namespace weft::sim
