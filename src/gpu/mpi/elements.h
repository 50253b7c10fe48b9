// Which elements and operators of the device's MPI's handles mean. MPI has no half and no bfloat16:
// for collectives they have data types of Weft's, and operators that round after each step.
#pragma once

#include <mpi.h>

#include <optional>

#include "base/result.h"
#include "gpu/operators.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

// Of these elements, also half and bfloat16; MPI_DATATYPE_NULL: MPI is not initialised.
MPI_Datatype datatype_of(weft_gpu_type type);
// Nothing where no kernel has the type, or the operator.
std::optional<weft_gpu_type> type_of(MPI_Datatype type);
std::optional<weft_gpu_op> op_of(MPI_Op op);
// MPI has no logical operators of numbers with fractions.
inline bool reduces_by_mpi(weft_gpu_type type, weft_gpu_op op) {
  return is_integer(type) || op < WEFT_GPU_LAND;
}

// The call as an MPI library carries it out that knows neither half nor bfloat16.
Result<Call> known_to_mpi(Call call);

}  // namespace weft::gpu
