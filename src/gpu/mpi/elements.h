// Maps MPI's handles to the device's element types and operators. MPI has no half and no bfloat16:
// Weft makes data types for them, and operators that round after each step.
#pragma once

#include <mpi.h>

#include <optional>

#include "base/result.h"
#include "gpu/operators.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

// Returns the MPI type of these elements; MPI_DATATYPE_NULL if MPI is not initialised.
MPI_Datatype datatype_of(weft_gpu_type type);
// Return nothing where no kernel has the type or the operator.
std::optional<weft_gpu_type> type_of(MPI_Datatype type);
std::optional<weft_gpu_op> op_of(MPI_Op op);
// MPI defines no logical operators for floating-point types.
inline bool reduces_by_mpi(weft_gpu_type type, weft_gpu_op op) {
  return is_integer(type) || op < WEFT_GPU_LAND;
}

// Returns the call in a form for an MPI library that knows neither half nor bfloat16.
Result<Call> known_to_mpi(Call call);

}  // namespace weft::gpu
