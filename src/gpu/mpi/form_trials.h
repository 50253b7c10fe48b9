// Measures in which form kernels carry a collective out fastest, on data of Weft's own, while it is
// being prepared.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gpu/forms.h"
#include "gpu/operation.h"
#include "gpu/runtime.h"

namespace weft::gpu {

// Returns the fastest of the forms, of which the first is the rule's. collective: what kernels are
// to carry out, whose spot is taken; it is free again when the function returns, unless it fails.
// budget_us: for how long to measure, equally on all ranks. Returns an error on all ranks if any
// has failed. All ranks must call it together.
Result<Form> fastest_form(Runtime* runtime, Context* context, const ByKernel& collective,
                          const std::vector<Form>& forms, std::int64_t budget_us, MPI_Comm comm);

}  // namespace weft::gpu
