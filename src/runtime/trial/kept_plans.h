// What the ranks have measured and learnt goes into the file of plans once, at the end of the job.
// Why by rank 0: the file is often on a file system of the whole machine, and of a large job some
// thousand ranks have something to keep.
#pragma once

#include <string>

#include "select/plan_cache.h"

namespace weft {

// Collective over all ranks, in MPI_Finalize, where nobody may still be inside a collective on
// common(). own: lines of this rank. Why they are not kept, for rank 0 to say; empty: they are.
std::string keep_plans(PlanCache& plans, const std::string& own);

}  // namespace weft
