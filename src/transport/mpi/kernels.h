// The kernel for an operator and a datatype of MPI's.
#pragma once

#include <mpi.h>

#include <string>

#include "shm/reduction.h"

namespace weft {

// Looks up the predefined handles; `find` as for bind_handles(). Those that the library lacks are
// left out.
void bind_kernels(void* (*find)(const char* name));

// nullptr where only MPI_Reduce_local knows how: user-defined operators, derived types.
Kernel kernel_for(MPI_Op op, MPI_Datatype type);
// Not a function of the application's.
bool is_predefined(MPI_Op op);
// "sum float64"; "" where there is no kernel.
std::string reduction_words(MPI_Op op, MPI_Datatype type);

}  // namespace weft
