// Measures the cost of observing a touch on this machine: each interval contains it, and it is
// subtracted.
#pragma once

namespace weft::advise {

// Is called inside MPI_Init: touches memory of the advisor's right after it is guarded.
void measure_cost();

}  // namespace weft::advise
