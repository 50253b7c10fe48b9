// Compares each collective call with the matching calls of the other ranks of its communicator, for
// `weft check`: function, root, counts, datatypes and operator. The ranks of a node share a mapped
// table, in which each stores its call before it makes it. A difference is thus reported even if
// the call then fails or never returns. All functions need the recorder's lock.
#pragma once

#include <cstdint>

#include "advise/callers.h"
#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

// Says whether a collective is called blocking, non-blocking or persistent. All ranks must use the
// same form, since MPI never matches different ones.
enum class Way : std::uint8_t { blocking, started, planned };

void agreement_begins(const char* directory);
// Compares the call with those of the other ranks, and reports a difference. Must be called before
// the call is passed to the MPI library. comm: the communicator, or a persistent request of it.
void compare_with_ranks(const Call& call, CallId id, Way way, Communicator& comm,
                        const Caller& caller);

}  // namespace weft::advise
