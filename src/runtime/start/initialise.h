// Initialises persistent collectives: makes and measures their plans, and makes their requests.
#pragma once

#include <mpi.h>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// Carries out or declines the initialisation. in_library: the library has this function; otherwise
// Weft declines nothing.
Started initialise(CallId id, const Call& call, bool in_library, MPI_Request* request);

}  // namespace weft
