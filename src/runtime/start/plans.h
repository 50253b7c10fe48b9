// Plans: made once for calls that look alike, and remembered by each thread.
#pragma once

#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"
#include "transport/mpi/call.h"

namespace weft {

// Returns the answer to a call. Before a blocking call or an initialisation, nothing may be
// deferred on the communicator.
Answer plan_for(Runtime& runtime, const Call& call, Use use);
// Returns the answer where no blocking call is Weft's, without a look at the call. A summary counts
// each such call; without one, similar calls go directly to the library from now on.
Answer leave_blocking(const Runtime& runtime);

// Returns the plan of a call that goes this way.
const Plan& make_plan_of(Runtime& runtime, const Call& call, const Plan& first, int way);
inline const Plan& plan_of(Runtime& runtime, const Call& call, const Plan& first, int way) {
  const Plan* const made = first.ways->plan(way);
  return made ? *made : make_plan_of(runtime, call, first, way);
}

}  // namespace weft
