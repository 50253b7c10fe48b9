// Starts non-blocking collectives.
#pragma once

#include <mpi.h>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// Starts the call, or declines it in favour of the library. known: the call's plan; nullptr if it
// must be looked up.
Started start(CallId id, const Call& call, const Plan* known, MPI_Request* request);
// Records a non-blocking collective or persistent initialisation that Weft has declined and the
// library has carried out. code: the library's result.
void passed_on(CallId id, const Started& declined, const MPI_Request* request, int code);

}  // namespace weft
