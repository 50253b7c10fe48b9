// Finds the reduction kernel for an MPI operator and datatype. A kernel is a loop that reduces two
// arrays.
#pragma once

#include <mpi.h>

#include <string>

#include "shm/reduction.h"

namespace weft {

// Returns the reduction kernel; nullptr if only MPI_Reduce_local can reduce (user-defined
// operators, derived datatypes).
Kernel kernel_for(MPI_Op op, MPI_Datatype type);
// Returns whether MPI predefines the operator; false if it is a function of the application.
bool is_predefined(MPI_Op op);
// Returns the names of operator and element type, such as "sum float64"; "" if there is no kernel.
std::string reduction_words(MPI_Op op, MPI_Datatype type);

}  // namespace weft
