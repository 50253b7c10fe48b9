// The rule that determines when the kernel copies between ranks of this node
// (select/one_copy_rule.h). The node's first rank finds it in the file of plans, or measures it
// with the second rank, so that all ranks have the same rule.
#pragma once

#include <mpi.h>

#include <vector>

#include "base/config.h"
#include "select/one_copy_rule.h"
#include "select/plan_cache.h"
#include "shm/one_copy.h"

namespace weft {

// The rule that the first rank knows before a measurement. It is sent to the others as plain bytes.
struct KnownRule {
  OneCopyRule rule;
  bool is_to_be_measured = false;
};
// Returns the rule from the options or the file of plans. ranks: the number of ranks on the node.
KnownRule known_rule(const Config& config, int ranks, PlanCache& plans);

// Returns the rule after measuring it; equal on all ranks. Collective over the ranks of the node.
// world_ranks: their ranks in MPI_COMM_WORLD. The first two ranks measure for at most half of
// --init-budget and store the result in the file of plans. before: the rule to use if there is no
// time.
OneCopyRule measured_rule(MPI_Comm here, const OneCopyRule& before,
                          const std::vector<int>& world_ranks, OneCopy& copies,
                          const Config& config, PlanCache& plans);

}  // namespace weft
