// Initialises persistent collectives: their plans are made and measured, and they get requests.
#pragma once

#include <mpi.h>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// Takes or declines the initialisation; Weft takes every one that the library lacks.
Started initialise(CallId id, const Call& call, bool in_library, MPI_Request* request);

}  // namespace weft
