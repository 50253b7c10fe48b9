// Maps handles of predefined datatypes and operators to Weft's description of them.
#pragma once

#include <mpi.h>

#include "shm/kernel.h"

namespace weft {

// Looks up the predefined handles; those that the library lacks are left out. find(): as for
// bind_handles().
void bind_predefined(void* (*find)(const char* name));

// Return Weft's description of a predefined datatype or operator; nullptr for those of the
// application, and for predefined ones that Weft does not know.
const Element* element_of(MPI_Datatype type);
const Operator* operator_of(MPI_Op op);

}  // namespace weft
