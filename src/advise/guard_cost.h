// Measures how long it takes on this machine to notice an access to a watched buffer. This time is
// part of each measured interval, and is subtracted from it.
#pragma once

namespace weft::advise {

// Measures how long it takes to notice an access to a watched buffer: watches memory of the advisor
// and accesses it at once. It must be called inside MPI_Init.
void measure_cost();

}  // namespace weft::advise
