// Maps handles of predefined datatypes and operators of MPI to Weft's description of them.
#pragma once

#include <mpi.h>

#include "shm/kernel.h"

namespace weft {

// Looks up the handles of all predefined datatypes and operators. find() returns the address of a
// symbol of the MPI library; handles whose symbol the library lacks are left out.
void bind_predefined(void* (*find)(const char* name));

// Return Weft's description of a predefined datatype or operator; nullptr for those that the
// application has made, and for predefined ones that Weft does not know.
const Element* element_of(MPI_Datatype type);
const Operator* operator_of(MPI_Op op);

}  // namespace weft
