// Finds the plan of a call, or makes it. Plans are made once for similar calls, and cached by each
// thread.
#pragma once

#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"
#include "transport/mpi/call.h"

namespace weft {

// Returns the plan for a call, or the reason why the library carries it out. Before a blocking call
// or an initialisation, no call may be deferred on the communicator.
Answer plan_for(Runtime& runtime, const Call& call, Use use);
// Returns the answer to a blocking call while Weft carries out none, without looking at the call's
// arguments. With a summary each such call is counted; without one, similar calls go directly to
// the library from now on.
Answer leave_blocking(const Runtime& runtime, Kind kind);

// Return the plan of a call that takes this variant, after making it if necessary. first: the plan
// that the call shares with its class.
const Plan& make_plan_of(Runtime& runtime, const Call& call, const Plan& first, int variant);
inline const Plan& plan_of(Runtime& runtime, const Call& call, const Plan& first, int variant) {
  const Plan* const made = first.variants->plan(variant);
  return made ? *made : make_plan_of(runtime, call, first, variant);
}

}  // namespace weft
