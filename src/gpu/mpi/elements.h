// Translates MPI datatypes and operators to those of the device's kernels. MPI has neither half nor
// bfloat16, so Weft makes datatypes for them, and operators that round after each step.
#pragma once

#include <mpi.h>

#include <optional>

#include "base/result.h"
#include "gpu/operators.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

// Returns the MPI datatype for this type of the device; MPI_DATATYPE_NULL if MPI is not
// initialised.
MPI_Datatype datatype_of(weft_gpu_type type);
// Return the device's type or operator for one of MPI; nothing if no kernel supports it.
std::optional<weft_gpu_type> type_of(MPI_Datatype type);
std::optional<weft_gpu_op> op_of(MPI_Op op);
// Returns whether MPI defines the operator for this type. MPI has no logical operators for
// floating-point types.
inline bool reduces_by_mpi(weft_gpu_type type, weft_gpu_op op) {
  return is_integer(type) || op < WEFT_GPU_LAND;
}

// Replaces Weft's datatypes and operators for half and bfloat16 in the call by ones that any MPI
// library knows. Returns an error if that is impossible.
Result<Call> known_to_mpi(Call call);

}  // namespace weft::gpu
