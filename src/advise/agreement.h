// Compares each collective call with those that other ranks make of the same communicator in its
// turn, for `weft check`: calls, roots, counts, datatypes and operators. The ranks of a node share
// a mapped table, where each notes its call before it makes it. Thus a difference is told even if
// the call then fails or never returns. All functions need the recorder's lock.
#pragma once

#include <cstdint>

#include "advise/callers.h"
#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

// Ranks must agree on the way in which a collective is called, since these never match each other.
enum class Way : std::uint8_t { blocking, started, planned };

void agreement_begins(const char* directory);
// Must be called before the library is given the call. comm: it, or a plan of it.
void compare_with_ranks(const Call& call, CallId id, Way way, Communicator& comm,
                        const Caller& caller);

}  // namespace weft::advise
