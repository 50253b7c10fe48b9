// Measures the cost of observing an access on this machine. Each measured interval contains this
// cost, which is therefore subtracted.
#pragma once

namespace weft::advise {

// Guards memory of the advisor and accesses it at once, to measure the cost. Must be called inside
// MPI_Init.
void measure_cost();

}  // namespace weft::advise
