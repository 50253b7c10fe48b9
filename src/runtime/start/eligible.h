// The first step from a call to its plan finds whether it can be Weft's at all.
#pragma once

#include <optional>

#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"
#include "schedule/collective.h"
#include "transport/mpi/call.h"

namespace weft {

// A call that is to have a plan.
struct Asked {
  Runtime& runtime;
  const Call& call;
  Communicator& communicator;
  Use use;
};

struct Eligible {
  std::optional<Reason> declined{};
  Shape shape{};
  bool by_callers = false;  // it runs a function that expects no other thread
};

// Rank-invariant, except for arguments that the library refuses on this rank before anything
// travels.
Eligible eligible(const Asked& asked);

// Returns the reason to decline a call that needs no look at its arguments. communicator: nullptr
// if Weft does not know it.
std::optional<Reason> declined_at_once(const Runtime& runtime, const Communicator* communicator,
                                       const Call& call, Use use);

// Returns whether its blocking calls may be learnt about: the node's memory does not serve them.
bool learns_blocking(const Runtime& runtime, const Communicator& communicator);
// Returns whether the call is Weft's only if the node's memory serves it.
bool in_memory_only(const Runtime& runtime, const Communicator& communicator, Use use);
// Returns why such a call is not Weft's: it needs MPI calls of a thread, or is blocking.
Reason outside_memory(const Runtime& runtime);

}  // namespace weft
