// Writes the measurements of all ranks, and what they have learnt, to the file of plans. This is
// done once, at the end of the job. Only rank 0 writes, because the file is often on a shared file
// system, and thousands of ranks may have results.
#pragma once

#include <string>

#include "select/plan_cache.h"

namespace weft {

// Writes the lines of all ranks to the file of plans. It is collective over all ranks, in
// MPI_Finalize. No rank may still be inside another collective on common(), Weft's shared internal
// communicator. own: this rank's lines. The result is valid only on rank 0.
PlanCache::Written keep_plans(PlanCache& plans, const std::string& own);

}  // namespace weft
