// Observing a touch costs this much on this machine: each window contains it, and it is taken off.
#pragma once

namespace weft::advise {

// Inside MPI_Init: touches of memory of the advisor's, right after it is guarded.
void measure_cost();

}  // namespace weft::advise
