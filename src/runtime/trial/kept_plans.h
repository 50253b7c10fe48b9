// Writes the ranks' measurements and results of learning into the file of plans once, at the end of
// the job. Rank 0 does it, since the file is often on a shared file system, and thousands of ranks
// of a large job may have something to keep.
#pragma once

#include <string>

#include "select/plan_cache.h"

namespace weft {

// Collective over all ranks, in MPI_Finalize, when nobody may still be inside a collective on
// common(). own: this rank's lines. The result is rank 0's.
PlanCache::Written keep_plans(PlanCache& plans, const std::string& own);

}  // namespace weft
