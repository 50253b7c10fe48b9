// Declares the type of reduction kernels, and the element types and operators that they support.
#pragma once

#include <cstdint>

namespace weft {

// The representation of a datatype's elements, by which a reduction kernel is chosen. The caller
// finds the element of a datatype, and the MPI library checks whether MPI defines an operator for
// the datatype (MPI_AINT is an int64, but has no logical operators).
enum class Element : std::uint8_t {
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  byte,      // MPI_BYTE: bitwise operators only
  boolean,   // C bool, C++ bool: logical operators only
  float16,   // computed as float, each result rounded to nearest even
  bfloat16,  // computed as float, like float16
  float32,
  float64,
  long_double,
  float_complex,
  double_complex,
  long_double_complex,
  float_int,  // struct { float value; int index; }; the following types are alike
  double_int,
  long_int,
  two_int,
  short_int,
  long_double_int,
};
inline constexpr int kElements = 24;

enum class Operator : std::uint8_t {
  sum,
  prod,
  max,
  min,
  land,
  lor,
  lxor,
  band,
  bor,
  bxor,
  maxloc,
  minloc,
};
inline constexpr int kOperators = 12;

enum class InstructionSet : std::uint8_t { baseline, avx2 };

// A function that reduces `count` elements. Operands may have any alignment. `out` and `also` (a
// second copy of the result, or nullptr) may be equal to `lower` or `higher`; otherwise nothing may
// overlap. Results are those of MPICH's MPI_Reduce_local, except for ties of bfloat16, which MPICH
// rounds up. Integers wrap around. max and min take the lower operand if neither is greater (NaN,
// zeros). maxloc and minloc take the smaller index for equal values, and the higher operand for a
// NaN. Open MPI differs: its vectorised operators saturate sums of 8 and 16 bits, and its max and
// min take the higher operand.
using Kernel = void (*)(const void* lower, const void* higher, void* out, void* also,
                        std::int64_t count);

}  // namespace weft
