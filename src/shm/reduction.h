// Reduction kernels: loops that compute out[i] = lower[i] op higher[i] for the predefined types and
// operators of MPI-4.1, section 6.9.2. MPI_Reduce_local cannot be used: it overwrites one operand,
// while in shared memory the operands belong to two processes and the result to a third one. All
// instruction sets give bitwise identical results, except for the choice of a NaN.
#pragma once

#include <cstdint>
#include <optional>

#include "shm/kernel.h"

namespace weft {

const char* element_name(Element element);  // returns a name such as "float64"
const char* operator_name(Operator op);     // returns a name such as "sum"

std::int64_t bytes_of(Element element);

// Returns the fastest kernel on this processor; nullptr if MPI does not define the operator for the
// type.
Kernel find_kernel(Element element, Operator op);
// KernelName: the element type and the operator of a kernel, in a form that another process
// understands. name_of() returns nullopt for a function that is no kernel.
struct KernelName {
  Element element;
  Operator op;
};
std::optional<KernelName> name_of(Kernel kernel);
// Returns the kernel for an instruction set, for tests and measurements; nullptr if MPI does not
// define the operator for the type, or if the processor lacks the instruction set.
Kernel find_kernel(Element element, Operator op, InstructionSet set);

}  // namespace weft
