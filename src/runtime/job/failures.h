// Failures: jobs that continue after a rank has failed or the program has revoked a communicator
// (ULFM). In such a job the MPI library carries out all collectives: Weft's internal communicators
// and shared memory do not notice failures, so that the remaining ranks would wait for ever.
#pragma once

#include "base/config.h"

namespace weft {

inline constexpr const char* kLeftToLibrary =
    "the MPI library carries out all collectives, and no summary or trace is written: this job "
    "goes on after a rank has failed (mpi_ft_enable), and Weft's collectives would wait for that "
    "rank; start the job without '--with-ft ulfm' to have Weft's collectives";

// Returns the configuration that replaces `wanted`. It has no feature in which all ranks take part,
// since the remaining ranks would wait there for a failed one.
Config left_to_library(Config wanted);

// Returns whether left_to_library() removes something that the user requested.
bool leaves_something(const Config& wanted);

}  // namespace weft
