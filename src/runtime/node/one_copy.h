// The rule by which the kernel copies between ranks of this node (select/one_copy_rule.h). The
// node's first rank finds it in the cache of plans, or measures it with the second; so all have the
// same.
#pragma once

#include <mpi.h>

#include <vector>

#include "base/config.h"
#include "select/one_copy_rule.h"
#include "select/plan_cache.h"
#include "shm/one_copy.h"

namespace weft {

// The first rank's prior knowledge, sent to the others as plain bytes.
struct KnownRule {
  OneCopyRule rule;
  bool is_to_be_measured = false;
};
// ranks: the number of ranks on the node.
KnownRule known_rule(const Config& config, int ranks, PlanCache& plans);

// Collective over the ranks of the node, given by their ranks in MPI_COMM_WORLD. The first two
// measure for at most half of --init-budget and keep the result in the cache. before: the rule to
// use if there is no time.
OneCopyRule measured_rule(MPI_Comm here, const OneCopyRule& before,
                          const std::vector<int>& world_ranks, OneCopy& copies,
                          const Config& config, PlanCache& plans);

}  // namespace weft
