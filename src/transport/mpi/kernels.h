// Finds the reduction kernel for an MPI operator and datatype.
#pragma once

#include <mpi.h>

#include <string>

#include "shm/reduction.h"

namespace weft {

// Returns the kernel; nullptr if only MPI_Reduce_local can reduce (user-defined operators, derived
// types).
Kernel kernel_for(MPI_Op op, MPI_Datatype type);
// Returns whether the operator is predefined by MPI rather than a function of the application.
bool is_predefined(MPI_Op op);
// Returns for instance "sum float64"; "" if there is no kernel.
std::string reduction_words(MPI_Op op, MPI_Datatype type);

}  // namespace weft
