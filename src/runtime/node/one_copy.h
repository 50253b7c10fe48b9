// The rule by which the kernel copies between ranks of this node (select/one_copy_rule.h): what the
// node's first rank finds in the cache of plans, or measures with the second; so all have the same.
#pragma once

#include <mpi.h>

#include <vector>

#include "base/config.h"
#include "select/one_copy_rule.h"
#include "select/plan_cache.h"
#include "shm/one_copy.h"

namespace weft {

// What the first rank knows beforehand, sent to the others as plain bytes.
struct KnownRule {
  OneCopyRule rule;
  bool is_to_be_measured = false;
};
// ranks: of the node.
KnownRule known_rule(const Config& config, int ranks, PlanCache& plans);

// Collective over the ranks of the node, whose numbers in MPI_COMM_WORLD these are. The
// first two of them measure for half of --init-budget at most; what they find is kept in the cache.
// before: what holds where there is no time for that.
OneCopyRule measured_rule(MPI_Comm here, const OneCopyRule& before,
                          const std::vector<int>& world_ranks, OneCopy& copies,
                          const Config& config, PlanCache& plans);

}  // namespace weft
