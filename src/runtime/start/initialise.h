// Initialises persistent collectives: makes and measures their plans, and makes their requests.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// Carries out or declines the initialisation. in_library: the library has this function; otherwise
// Weft declines nothing.
Started initialise(CallId id, const Call& call, bool in_library, MPI_Request* request);

// The objects that an exchange uses until its request is freed.
using KeptForRequest = std::vector<std::shared_ptr<void>>;

// Initialises a neighbourhood alltoallw whose neighbours are those of `shape`, and need not be in a
// topology. Weft takes it under every engine. Returns an MPI error code.
int initialise_exchange(Runtime& runtime, const Call& call, const Shape& shape,
                        Communicator& communicator, const KeptForRequest& kept,
                        MPI_Request* request);

}  // namespace weft
