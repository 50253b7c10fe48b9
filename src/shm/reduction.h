// Element-wise reduction kernels, out[i] = lower[i] op higher[i], for the predefined types and
// operators of MPI-4.1, section 6.9.2. MPI_Reduce_local cannot be used: it overwrites one operand,
// while in shared memory the operands belong to two processes and the result to a third one. All
// instruction sets give bitwise identical results, except for the choice of a NaN.
#pragma once

#include <cstdint>
#include <optional>

#include "shm/kernel.h"

namespace weft {

const char* element_name(Element element);  // returns for instance "float64"
const char* operator_name(Operator op);     // returns for instance "sum"

std::int64_t bytes_of(Element element);

// Returns the fastest kernel on this processor; nullptr if MPI defines no such reduction.
Kernel find_kernel(Element element, Operator op);
// The name of a kernel, in a form that another process understands. name_of() returns nullopt for
// functions that are no kernels.
struct KernelName {
  Element element;
  Operator op;
};
std::optional<KernelName> name_of(Kernel kernel);
// Returns the kernel of an instruction set, for tests and measurements; nullptr if MPI defines no
// such reduction or the processor lacks the instruction set.
Kernel find_kernel(Element element, Operator op, InstructionSet set);

}  // namespace weft
