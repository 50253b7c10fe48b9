// Finds the reduction kernel for a predefined operator and datatype. The sizes of Fortran's types
// are checked, since they depend on the compiler.
#include "transport/mpi/kernels.h"

#include "library/generated/library_calls.h"
#include "transport/mpi/predefined.h"

namespace weft {

Kernel kernel_for(MPI_Op op, MPI_Datatype type) {
  const Element* element = element_of(type);
  const Operator* meaning = operator_of(op);
  if (!element || !meaning) return nullptr;
  MPI_Aint lb = 0, extent = 0;
  const bool as_expected = library_calls.Type_get_extent(type, &lb, &extent) == MPI_SUCCESS &&
                           extent == bytes_of(*element);
  return as_expected ? find_kernel(*element, *meaning) : nullptr;
}

bool is_predefined(MPI_Op op) {
  return operator_of(op) != nullptr;
}

std::string reduction_words(MPI_Op op, MPI_Datatype type) {
  if (!kernel_for(op, type)) return "";
  return std::string(operator_name(*operator_of(op))) + " " + element_name(*element_of(type));
}

}  // namespace weft
