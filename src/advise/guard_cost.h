// Measures the time that observing an access takes on this machine. This time is part of each
// measured interval, and is subtracted from it.
#pragma once

namespace weft::advise {

// Measures the time that observing an access takes, by guarding memory of the advisor and accessing
// it at once. It must be called inside MPI_Init.
void measure_cost();

}  // namespace weft::advise
