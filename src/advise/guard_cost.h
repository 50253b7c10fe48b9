// Measures the cost of observing an access on this machine. Each measured interval contains this
// cost, which is therefore subtracted.
#pragma once

namespace weft::advise {

// Must be called inside MPI_Init. Accesses memory of the advisor directly after it is guarded.
void measure_cost();

}  // namespace weft::advise
