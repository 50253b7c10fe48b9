// Writes the ranks' measurements and learned results to the file of plans once, at the end of the
// job. Only rank 0 writes, because the file is often on a shared file system, and thousands of
// ranks may have results.
#pragma once

#include <string>

#include "select/plan_cache.h"

namespace weft {

// Writes the lines of all ranks to the file of plans. Collective over all ranks, in MPI_Finalize,
// when no rank may still be inside a collective on common(). own: this rank's lines. Only rank 0's
// result has meaning.
PlanCache::Written keep_plans(PlanCache& plans, const std::string& own);

}  // namespace weft
