// The first step from a call to its plan: determines whether Weft can carry the call out at all.
#pragma once

#include <optional>

#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"
#include "schedule/collective.h"
#include "transport/mpi/call.h"

namespace weft {

// A call for which a plan is to be made.
struct PlanRequest {
  Runtime& runtime;
  const Call& call;
  Communicator& communicator;
  Use use;
};

struct Eligible {
  std::optional<Reason> declined{};
  Shape shape{};
  bool by_callers = false;  // the call runs an application function that expects no other thread
};

// Returns the call's shape, or the reason to decline it. The result is equal on all ranks, except
// if the library refuses arguments on this rank before any message is sent.
Eligible eligible(const PlanRequest& asked);

// Returns a reason to decline the call that does not depend on its arguments; nullopt if there is
// none. communicator: nullptr if Weft does not know it.
std::optional<Reason> declined_at_once(const Runtime& runtime, const Communicator* communicator,
                                       const Call& call, Use use);

// Returns whether engine auto may learn about blocking calls of this kind on this communicator,
// because they are not carried out in the node's shared memory, or because no rank knows their
// size.
bool learns_blocking(const Runtime& runtime, const Communicator& communicator, Kind kind);
// Returns whether Weft carries the call out only if the node's shared memory serves it.
bool in_memory_only(const Runtime& runtime, const Communicator& communicator, Use use, Kind kind);
// Returns the reason to decline a call that shared memory does not serve: it needs MPI calls by a
// thread, or it is blocking.
Reason outside_memory(const Runtime& runtime);

}  // namespace weft
