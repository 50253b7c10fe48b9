// Starts non-blocking collectives.
#pragma once

#include <mpi.h>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// Starts or declines the call. known: the call's plan; nullptr if it must be looked up.
Started start(CallId id, const Call& call, const Plan* known, MPI_Request* request);
// Is called after the library has carried out a non-blocking collective or persistent
// initialisation that Weft has declined. code: the library's result.
void passed_on(CallId id, const Started& declined, const MPI_Request* request, int code);

}  // namespace weft
