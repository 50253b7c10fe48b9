// Maps predefined datatypes and operators of MPI to Weft's description of them. Fortran's types are
// assumed to have the usual sizes; where that matters, the extent must be compared (kernels.cc).
#include "transport/mpi/predefined.h"

#include <vector>

namespace weft {
namespace {

template <class Handle, class Meaning>
struct Known {
  Handle handle;
  Meaning meaning;
};
std::vector<Known<MPI_Datatype, Element>> types;
std::vector<Known<MPI_Op, Operator>> operators;

template <class Handle, class Meaning>
void add(std::vector<Known<Handle, Meaning>>& known, Handle handle, Meaning meaning) {
  known.push_back({handle, meaning});
}

// In Open MPI the handle of a predefined object is the address of a variable in the library.
#ifdef WEFT_FAMILY_OPENMPI
#define WEFT_KNOWN(list, Handle, macro, symbol, meaning) \
  if (void* found = find("ompi_mpi_" symbol)) add(list, static_cast<Handle>(found), meaning);
#else
#define WEFT_KNOWN(list, Handle, macro, symbol, meaning) add(list, Handle{macro}, meaning);
#endif
#define WEFT_TYPE(macro, symbol, element) \
  WEFT_KNOWN(types, MPI_Datatype, macro, symbol, Element::element)
#define WEFT_OP(macro, symbol, name) \
  WEFT_KNOWN(operators, MPI_Op, macro, "op_" symbol, Operator::name)

void bind_integers(void* (*find)(const char* name)) {
  static_cast<void>(find);
  static_assert(sizeof(long) == 8 && sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8);
  WEFT_TYPE(MPI_SIGNED_CHAR, "signed_char", int8)
  WEFT_TYPE(MPI_INT8_T, "int8_t", int8)
  WEFT_TYPE(MPI_SHORT, "short", int16)
  WEFT_TYPE(MPI_INT16_T, "int16_t", int16)
  WEFT_TYPE(MPI_INT, "int", int32)
  WEFT_TYPE(MPI_INT32_T, "int32_t", int32)
  WEFT_TYPE(MPI_LONG, "long", int64)
  WEFT_TYPE(MPI_LONG_LONG, "long_long_int", int64)
  WEFT_TYPE(MPI_INT64_T, "int64_t", int64)
  WEFT_TYPE(MPI_AINT, "aint", int64)
  WEFT_TYPE(MPI_OFFSET, "offset", int64)
  WEFT_TYPE(MPI_COUNT, "count", int64)
  WEFT_TYPE(MPI_UNSIGNED_CHAR, "unsigned_char", uint8)
  WEFT_TYPE(MPI_UINT8_T, "uint8_t", uint8)
  WEFT_TYPE(MPI_UNSIGNED_SHORT, "unsigned_short", uint16)
  WEFT_TYPE(MPI_UINT16_T, "uint16_t", uint16)
  WEFT_TYPE(MPI_UNSIGNED, "unsigned", uint32)
  WEFT_TYPE(MPI_UINT32_T, "uint32_t", uint32)
  WEFT_TYPE(MPI_UNSIGNED_LONG, "unsigned_long", uint64)
  WEFT_TYPE(MPI_UNSIGNED_LONG_LONG, "unsigned_long_long", uint64)
  WEFT_TYPE(MPI_UINT64_T, "uint64_t", uint64)
  WEFT_TYPE(MPI_BYTE, "byte", byte)
  WEFT_TYPE(MPI_C_BOOL, "c_bool", boolean)
  WEFT_TYPE(MPI_CXX_BOOL, "cxx_bool", boolean)
  WEFT_TYPE(MPI_INTEGER, "integer", int32)
}

void bind_others(void* (*find)(const char* name)) {
  static_cast<void>(find);
  WEFT_TYPE(MPI_FLOAT, "float", float32)
  WEFT_TYPE(MPI_DOUBLE, "double", float64)
  WEFT_TYPE(MPI_LONG_DOUBLE, "long_double", long_double)
  WEFT_TYPE(MPI_REAL, "real", float32)
  WEFT_TYPE(MPI_DOUBLE_PRECISION, "dblprec", float64)
  WEFT_TYPE(MPI_C_FLOAT_COMPLEX, "c_float_complex", float_complex)
  WEFT_TYPE(MPI_C_DOUBLE_COMPLEX, "c_double_complex", double_complex)
  WEFT_TYPE(MPI_C_LONG_DOUBLE_COMPLEX, "c_long_double_complex", long_double_complex)
  WEFT_TYPE(MPI_COMPLEX, "cplex", float_complex)
  WEFT_TYPE(MPI_DOUBLE_COMPLEX, "dblcplex", double_complex)
  WEFT_TYPE(MPI_FLOAT_INT, "float_int", float_int)
  WEFT_TYPE(MPI_DOUBLE_INT, "double_int", double_int)
  WEFT_TYPE(MPI_LONG_INT, "long_int", long_int)
  WEFT_TYPE(MPI_2INT, "2int", two_int)
  WEFT_TYPE(MPI_SHORT_INT, "short_int", short_int)
  WEFT_TYPE(MPI_LONG_DOUBLE_INT, "longdbl_int", long_double_int)
}

void bind_operators(void* (*find)(const char* name)) {
  static_cast<void>(find);
  WEFT_OP(MPI_SUM, "sum", sum)
  WEFT_OP(MPI_PROD, "prod", prod)
  WEFT_OP(MPI_MAX, "max", max)
  WEFT_OP(MPI_MIN, "min", min)
  WEFT_OP(MPI_LAND, "land", land)
  WEFT_OP(MPI_LOR, "lor", lor)
  WEFT_OP(MPI_LXOR, "lxor", lxor)
  WEFT_OP(MPI_BAND, "band", band)
  WEFT_OP(MPI_BOR, "bor", bor)
  WEFT_OP(MPI_BXOR, "bxor", bxor)
  WEFT_OP(MPI_MAXLOC, "maxloc", maxloc)
  WEFT_OP(MPI_MINLOC, "minloc", minloc)
}

template <class Handle, class Meaning>
const Meaning* meaning_of(const std::vector<Known<Handle, Meaning>>& known, Handle handle) {
  for (const auto& one : known)
    if (one.handle == handle) return &one.meaning;
  return nullptr;
}

}  // namespace

void bind_predefined(void* (*find)(const char* name)) {
  if (!types.empty()) return;
  bind_integers(find);
  bind_others(find);
  bind_operators(find);
}

const Element* element_of(MPI_Datatype type) {
  return meaning_of(types, type);
}

const Operator* operator_of(MPI_Op op) {
  return meaning_of(operators, op);
}

}  // namespace weft
