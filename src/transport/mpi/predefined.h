// The predefined datatypes and operators, by their handles.
#pragma once

#include <mpi.h>

#include "shm/kernel.h"

namespace weft {

// Looks up the predefined handles; `find` as for bind_handles(). Handles that the library lacks are
// left out.
void bind_predefined(void* (*find)(const char* name));

// Both return nullptr for what the application has made, and for predefined ones that Weft does not
// know.
const Element* element_of(MPI_Datatype type);
const Operator* operator_of(MPI_Op op);

}  // namespace weft
