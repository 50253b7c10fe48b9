// Handles jobs that continue after a rank has failed, or after the program has revoked a
// communicator (ULFM). In such a job the MPI library carries out all collectives. Weft's own
// communicators and shared memory would not notice a failed rank, so that the other ranks would
// wait forever.
#pragma once

#include "base/config.h"

namespace weft {

inline constexpr const char* kLeftToLibrary =
    "the MPI library carries out all collectives, and no summary or trace is written: this job "
    "goes on after a rank has failed (mpi_ft_enable), and Weft's collectives would wait for that "
    "rank; start the job without '--with-ft ulfm' to have Weft's collectives";

// Returns the configuration to use in place of `wanted` in a job that continues after a rank has
// failed. It has no feature in which all ranks take part, since they would wait there for a failed
// rank.
Config left_to_library(Config wanted);

// Returns whether left_to_library() switches off anything that the user has requested.
bool leaves_something(const Config& wanted);

}  // namespace weft
