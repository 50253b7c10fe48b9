// Initialises persistent collectives: makes their plans, by measurement if necessary, and their
// requests.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// Initialises a persistent collective, or declines it. in_library: whether the MPI library has this
// function. If it has not, Weft never declines.
Started initialise(CallId id, const Call& call, bool in_library, MPI_Request* request);

// Objects that must exist until the request of a persistent neighbourhood exchange is freed.
using KeptForRequest = std::vector<std::shared_ptr<void>>;

// Initialises a persistent neighbourhood alltoallw. Its neighbours are those in `shape`; the
// communicator needs no topology. Weft carries it out with every engine. Returns an MPI error code.
int initialise_exchange(Runtime& runtime, const Call& call, const Shape& shape,
                        Communicator& communicator, const KeptForRequest& kept,
                        MPI_Request* request);

}  // namespace weft
