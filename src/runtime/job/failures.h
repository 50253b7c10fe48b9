// Failures: jobs that continue after a rank has failed, or after the program has revoked a
// communicator (ULFM). In such a job the MPI library carries out all collectives, since internal
// communicators and the memory of a node know of neither: the remaining ranks would wait for ever.
#pragma once

#include "base/config.h"

namespace weft {

inline constexpr const char* kLeftToLibrary =
    "the MPI library carries out all collectives, and no summary or trace is written: this job "
    "goes on after a rank has failed (mpi_ft_enable), and Weft's collectives would wait for that "
    "rank; start the job without '--with-ft ulfm' to have Weft's collectives";

// Returns the configuration that replaces `wanted`: nothing that all ranks do together, since the
// remaining ranks would wait there for one that has failed.
Config left_to_library(Config wanted);

// Returns whether that is less than was asked for.
bool leaves_something(const Config& wanted);

}  // namespace weft
