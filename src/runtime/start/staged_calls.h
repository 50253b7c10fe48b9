// Carries out calls on GPU memory that Weft leaves to an MPI library which does not accept GPU
// memory. The library's own call works on copies in host memory. On other ranks, whose buffers the
// library can access, the wrapper makes the same call.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

// Returns data on the call's communicator if the MPI library needs copies of the call's buffers;
// otherwise nullptr.
std::shared_ptr<Communicator> needs_copies_on(const Runtime& runtime, const Call& call);

// Both make the MPI library's call on copies, and return an MPI error code. communicator: what
// needs_copies_on() has returned. in_flight: a counter that is decremented when the application
// completes the call, and belongs to the communicator; may be nullptr.
int carry_out_on_copies(CallId id, const Call& call, const Communicator& communicator);
int start_on_copies(Runtime& runtime, CallId id, const Call& call,
                    std::shared_ptr<Communicator> communicator, std::atomic<int>* in_flight,
                    MPI_Request* request);

}  // namespace weft
