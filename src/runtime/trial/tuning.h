// Tuning of persistent collectives during initialisation: candidates (select/candidates.h) are
// measured on buffers of Weft, or the plan is known from the file of plans. Initialisation may wait
// for the other ranks, and its choice is used many times. Parameters are chosen at initialisation
// as in Jocksch, Piccinali, shared-memory persistent allreduce.
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

// Returns the record of an initialisation that is not tuned. why: the reason.
PlanRecord plan_by_rule(CallId id, const Call& call, const Schedule& schedule,
                        const std::string& why);

// Returns the schedule to use in place of `by_rule`, after measuring if necessary; the choice is
// equal on all ranks. Collective; waits for all ranks like a blocking collective. kernel: for
// reductions.
std::shared_ptr<const Schedule> tuned_schedule(Runtime& runtime, const Call& call,
                                               InternalCollective& internal_collective,
                                               Kernel kernel,
                                               std::shared_ptr<const Schedule> by_rule);

}  // namespace weft
