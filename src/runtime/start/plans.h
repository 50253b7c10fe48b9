// Finds the plan of a call, or makes it. A plan is made in four steps, eligible(), chosen_for(),
// schedule_for() and memory_for(). Each thread caches the plans, since programs repeat similar
// calls.
#pragma once

#include "runtime/job/runtime.h"
#include "runtime/start/plan.h"
#include "transport/mpi/call.h"

namespace weft {

// Returns the plan for a collective call, or the reason for which the MPI library carries it out.
// If the call is blocking or initialises a persistent collective, no collective on its communicator
// may be deferred.
Answer plan_for(Runtime& runtime, const Call& call, Use use);
// Returns the answer to a blocking collective while Weft carries out none, without looking at its
// arguments. If there is a summary, each such call is counted. If not, later calls of this kind go
// directly to the MPI library.
Answer leave_blocking(const Runtime& runtime, Kind kind);

// Return the plan for a call that takes the variant (engine and algorithm) with this index, after
// making the plan if necessary. first: the plan that all calls of the same call class share.
const Plan& make_plan_of(Runtime& runtime, const Call& call, const Plan& first, int variant);
inline const Plan& plan_of(Runtime& runtime, const Call& call, const Plan& first, int variant) {
  const Plan* const made = first.variants->plan(variant);
  return made ? *made : make_plan_of(runtime, call, first, variant);
}

}  // namespace weft
