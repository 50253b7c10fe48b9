// Finds the sizes from which the kernel copies between ranks of this node (select/one_copy_rule.h):
// from the user's option, from the file of plans, or by a measurement between the node's first two
// ranks. The result is equal on all ranks of the node.
#pragma once

#include <mpi.h>

#include <vector>

#include "base/config.h"
#include "select/one_copy_rule.h"
#include "select/plan_cache.h"
#include "shm/one_copy.h"

namespace weft {

// Holds what the first rank of the node knows before a measurement. It is sent to the other ranks
// as plain bytes.
struct KnownRule {
  OneCopyRule rule;
  bool is_to_be_measured = false;
};
// Returns the rule from the user's options or the file of plans, and whether it must be measured.
// ranks: the number of ranks on the node.
KnownRule known_rule(const Config& config, int ranks, PlanCache& plans);

// Measures the rule, and returns it; collective over the ranks of the node. The first two ranks
// measure for at most half of --init-budget, and store the result in the file of plans. here: a
// communicator of these ranks. before: the rule to return if nothing could be measured.
// world_ranks: their ranks in MPI_COMM_WORLD. The result is equal on all ranks.
OneCopyRule measured_rule(MPI_Comm here, const OneCopyRule& before,
                          const std::vector<int>& world_ranks, OneCopy& copies,
                          const Config& config, PlanCache& plans);

}  // namespace weft
