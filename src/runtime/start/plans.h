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
Answer leave_blocking(const Runtime& runtime, Kind kind);

// Returns the plan of a call that takes this variant.
const Plan& make_plan_of(Runtime& runtime, const Call& call, const Plan& first, int variant);
inline const Plan& plan_of(Runtime& runtime, const Call& call, const Plan& first, int variant) {
  const Plan* const made = first.variants->plan(variant);
  return made ? *made : make_plan_of(runtime, call, first, variant);
}

}  // namespace weft
