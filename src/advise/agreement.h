// Compares each collective call with the matching calls of the communicator's other ranks, for
// `weft check`: the function, root, counts, datatypes and operator. The ranks of a node share a
// table in memory. A rank stores its call there before it makes the call, so that a difference is
// reported even if the call then fails or never returns. Recorder::lock() must be held when these
// functions are called.
#pragma once

#include <cstdint>

#include "advise/callers.h"
#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

// Says whether a collective is blocking, non-blocking (started) or persistent (planned). All ranks
// must use the same form, since MPI does not match calls of different forms.
enum class Way : std::uint8_t { blocking, started, planned };

void agreement_begins(const char* directory);
// Compares a collective call with the calls of the other ranks, and reports a difference. It must
// be called before the call is passed to the MPI library. comm: the communicator; for a persistent
// collective, a copy whose identity is that of the request.
void compare_with_ranks(const Call& call, CallId id, Way way, Communicator& comm,
                        const Caller& caller);

}  // namespace weft::advise
