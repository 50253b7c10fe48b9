// Chooses the algorithm and its parameters for a persistent collective during its initialisation.
// Several candidates (select/candidates.h) are measured on buffers of Weft's own, unless the file
// of plans already has a result. The time is well spent, since an initialisation may wait for other
// ranks and its choice is used many times. Jocksch and Piccinali choose parameters at
// initialisation in the same way (shared-memory persistent allreduce).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/job/records.h"
#include "runtime/trial/internal_collective.h"
#include "shm/reduction.h"
#include "transport/mpi/call.h"

namespace weft {

class Runtime;

// Returns the record of an initialisation without a measurement, for the summary. why: the reason
// for that.
PlanRecord plan_by_rule(CallId id, const Call& call, const Schedule& schedule,
                        const std::string& why);

// Returns the schedule to use in place of `by_rule`, after measuring if necessary. It is collective
// and waits for all ranks. kernel: the reduction function. The choice is equal on all ranks.
std::shared_ptr<const Schedule> tuned_schedule(Runtime& runtime, const Call& call,
                                               InternalCollective& internal_collective,
                                               Kernel kernel,
                                               std::shared_ptr<const Schedule> by_rule);

}  // namespace weft
