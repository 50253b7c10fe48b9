// What observing a touch costs on this machine: it is in each window, and has to be taken off.
#pragma once

namespace weft::advise {

// Inside MPI_Init: touches of memory of the advisor's, right after it is guarded.
void measure_cost();

}  // namespace weft::advise
