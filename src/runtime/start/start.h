// Starts non-blocking collectives.
#pragma once

#include <mpi.h>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// Starts a non-blocking collective, or declines it; the MPI library must then carry it out. known:
// the call's plan; nullptr if it must be looked up.
Started start(CallId id, const Call& call, const Plan* known, MPI_Request* request);
// Records a non-blocking collective, or the initialisation of a persistent one, that Weft has
// declined and the MPI library has carried out. code: the MPI library's result.
void passed_on(CallId id, const Started& declined, const MPI_Request* request, int code);

}  // namespace weft
