// Element-wise reduction kernels: out[i] = lower[i] op higher[i], for the predefined types and
// operators of MPI-4.1, section 6.9.2.
// Why not MPI_Reduce_local: it overwrites one operand and takes both from a datatype; in shared
// memory the operands lie in two processes' parts and the result in a third one.
// Every instruction set gives the same result, bit for bit (which NaN it is excepted).
#pragma once

#include <cstdint>
#include <optional>

namespace weft {

// What a datatype is in memory. The caller tells which datatype is which; whether MPI defines an
// operator for a *datatype* (MPI_AINT is an int64, but not a logical) is the library's to check.
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
  bfloat16,  // likewise
  float32,
  float64,
  long_double,
  float_complex,
  double_complex,
  long_double_complex,
  float_int,  // struct { float value; int index; }, and so on
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

const char* element_name(Element element);  // "float64"
const char* operator_name(Operator op);     // "sum"

enum class InstructionSet : std::uint8_t { baseline, avx2 };

std::int64_t bytes_of(Element element);

// Any alignment; `out` and `also`, where the result goes as well if it is not nullptr, may be
// `lower` or `higher`, otherwise nothing overlaps. Results are those of MPICH's MPI_Reduce_local,
// but for ties of bfloat16, which MPICH rounds up: integers wrap around; max and min take the lower
// operand where neither is greater (a NaN, zeros); maxloc and minloc of equal values take the
// smaller index, with a NaN the higher operand. Open MPI's vectorised operators saturate sums of 8
// and 16 bits, and max and min take the higher.
using Kernel = void (*)(const void* lower, const void* higher, void* out, void* also,
                        std::int64_t count);

// The fastest on this processor; nullptr where MPI defines no such reduction.
Kernel find_kernel(Element element, Operator op);
// What another process finds the same one by. nullopt: it is none of these.
struct KernelName {
  Element element;
  Operator op;
};
std::optional<KernelName> name_of(Kernel kernel);
// For tests and measurements. nullptr also where the processor lacks the instruction set.
Kernel find_kernel(Element element, Operator op, InstructionSet set);

}  // namespace weft
