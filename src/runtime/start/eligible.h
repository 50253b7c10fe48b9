// The first of four steps from a call to its plan (plans.h). It finds out whether Weft can carry
// the call out at all.
#pragma once

#include <optional>

#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"
#include "schedule/collective.h"
#include "transport/mpi/call.h"

namespace weft {

// Describes a call for which a plan must be made.
struct PlanRequest {
  Runtime& runtime;
  const Call& call;
  Communicator& communicator;
  Use use;
};

struct Eligible {
  std::optional<Reason> declined{};
  Shape shape{};
  // Whether the call runs a function of the application that must not run on Weft's threads.
  bool by_callers = false;
};

// Returns the call's shape, or the reason for which Weft declines it. The result is equal on all
// ranks, with one exception: the MPI library may refuse arguments on this rank only, before any
// message is sent.
Eligible eligible(const PlanRequest& asked);

// Returns a reason to decline the call that does not depend on its arguments; nullopt if there is
// none. communicator: nullptr if Weft has no data on it.
std::optional<Reason> declined_at_once(const Runtime& runtime, const Communicator* communicator,
                                       const Call& call, Use use);

// Returns whether engine auto may learn about blocking calls of this kind on this communicator. It
// may if they are not carried out in the node's shared memory, or if no rank knows their total
// size.
bool learns_blocking(const Runtime& runtime, const Communicator& communicator, Kind kind);
// Returns whether Weft carries out calls of this kind on this communicator only if the node's
// shared memory suffices for them.
bool in_memory_only(const Runtime& runtime, const Communicator& communicator, Use use, Kind kind);
// Returns why Weft declines a call for which shared memory does not suffice: a thread would have to
// call MPI, or the call is blocking.
Reason outside_memory(const Runtime& runtime);

}  // namespace weft
