// Declares the type of reduction kernels (loops that reduce two arrays), and the element types and
// operators that they support.
#pragma once

#include <cstdint>

namespace weft {

// The representation of a datatype's elements in memory, by which a reduction kernel is chosen. The
// MPI library checks whether MPI defines an operator for the datatype itself: MPI_AINT is an int64,
// but has no logical operators.
enum class Element : std::uint8_t {
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  byte,      // MPI_BYTE; has bitwise operators only
  boolean,   // bool of C or C++; has logical operators only
  float16,   // computed as float; each result is rounded to nearest even
  bfloat16,  // computed as float; each result is rounded to nearest even
  float32,
  float64,
  long_double,
  float_complex,
  double_complex,
  long_double_complex,
  // Struct { float value; int index; }, as for MPI_FLOAT_INT; the types below are like it.
  float_int,
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

// A function that reduces `count` elements: out[i] = lower[i] op higher[i]. Operands may have any
// alignment. `also` gets a second copy of the result, unless it is nullptr. `out` and `also` may be
// equal to `lower` or `higher`; otherwise no two of them may overlap.
// Results are those of MPICH's MPI_Reduce_local, except for ties of bfloat16, which MPICH rounds
// up. Integers wrap around. max and min take the lower operand if neither is greater (NaN, zeros).
// maxloc and minloc take the smaller index for equal values, and the higher operand for a NaN. Open
// MPI differs: its vectorised operators saturate sums of 8 and 16 bits, and its max and min take
// the higher operand.
using Kernel = void (*)(const void* lower, const void* higher, void* out, void* also,
                        std::int64_t count);

}  // namespace weft
