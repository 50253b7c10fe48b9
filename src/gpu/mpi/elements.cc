#include "gpu/mpi/elements.h"

#include <algorithm>
#include <initializer_list>

namespace weft::gpu {
namespace {

template <class T, weft_gpu_op op>
void reduce(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* const given = static_cast<const T*>(in);
  auto* const all = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) all[i] = combined(op, given[i], all[i]);
}

// ShortFloat: the MPI datatype and the operators that Weft makes for a 16-bit floating-point type.
// They exist until the process ends.
struct ShortFloat {
  MPI_Datatype type;
  MPI_Op ops[WEFT_GPU_MAX + 1];
};

template <class T>
ShortFloat made_of() {
  ShortFloat made;
  MPI_Type_contiguous(1, MPI_UINT16_T, &made.type);
  MPI_Type_commit(&made.type);
  MPI_Op_create(reduce<T, WEFT_GPU_SUM>, 1, &made.ops[WEFT_GPU_SUM]);
  MPI_Op_create(reduce<T, WEFT_GPU_PROD>, 1, &made.ops[WEFT_GPU_PROD]);
  MPI_Op_create(reduce<T, WEFT_GPU_MIN>, 1, &made.ops[WEFT_GPU_MIN]);
  MPI_Op_create(reduce<T, WEFT_GPU_MAX>, 1, &made.ops[WEFT_GPU_MAX]);
  return made;
}

const ShortFloat& short_float(weft_gpu_type type) {
  static const ShortFloat half = made_of<Half>(), bfloat16 = made_of<Bfloat16>();
  return type == WEFT_GPU_HALF ? half : bfloat16;
}

bool is_one_of(MPI_Datatype type, std::initializer_list<MPI_Datatype> all) {
  return std::find(all.begin(), all.end(), type) != all.end();
}

}  // namespace

MPI_Datatype datatype_of(weft_gpu_type type) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (!initialised) return MPI_DATATYPE_NULL;
  if (type == WEFT_GPU_HALF || type == WEFT_GPU_BFLOAT16) return short_float(type).type;
  const MPI_Datatype integers[] = {MPI_INT8_T,  MPI_INT16_T,  MPI_INT32_T,  MPI_INT64_T,
                                   MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T};
  if (is_integer(type)) return integers[type];
  return type == WEFT_GPU_FLOAT ? MPI_FLOAT : MPI_DOUBLE;
}

// Returns the device's type for an MPI datatype; nothing if no kernel supports it (elements.h). It
// compares the datatype with those of C, those of Fortran, which an MPI library may lack, and
// Weft's two 16-bit types.
std::optional<weft_gpu_type> type_of(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return std::nullopt;
  for (const weft_gpu_type one : {WEFT_GPU_HALF, WEFT_GPU_BFLOAT16}) {
    if (type == short_float(one).type) return one;
  }
  int size = 0;
  MPI_Type_size(type, &size);
  const auto sized = [size](weft_gpu_type one_byte) {
    const int width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    return static_cast<weft_gpu_type>(one_byte + width);
  };
  if (is_one_of(type, {MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T,
                       MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_INTEGER, MPI_INTEGER1,
                       MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})) {
    return sized(WEFT_GPU_INT8);
  }
  if (is_one_of(type,
                {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
                 MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T})) {
    return sized(WEFT_GPU_UINT8);
  }
  const bool is_real = is_one_of(
      type, {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8});
  if (is_real && size == sizeof(float)) return WEFT_GPU_FLOAT;
  if (is_real && size == sizeof(double)) return WEFT_GPU_DOUBLE;
  return std::nullopt;
}

std::optional<weft_gpu_op> op_of(MPI_Op op) {
  const struct {
    MPI_Op mpi;
    weft_gpu_op own;
  } all[] = {{MPI_SUM, WEFT_GPU_SUM},   {MPI_PROD, WEFT_GPU_PROD}, {MPI_MIN, WEFT_GPU_MIN},
             {MPI_MAX, WEFT_GPU_MAX},   {MPI_LAND, WEFT_GPU_LAND}, {MPI_LOR, WEFT_GPU_LOR},
             {MPI_LXOR, WEFT_GPU_LXOR}, {MPI_BAND, WEFT_GPU_BAND}, {MPI_BOR, WEFT_GPU_BOR},
             {MPI_BXOR, WEFT_GPU_BXOR}};
  for (const auto& one : all) {
    if (op == one.mpi) return one.own;
  }
  return std::nullopt;
}

Result<Call> known_to_mpi(Call call) {
  if (!reduces(call.kind)) return call;
  const auto type = type_of(call.recvtype);
  if (type != WEFT_GPU_HALF && type != WEFT_GPU_BFLOAT16) return call;
  const auto op = op_of(call.op);
  // A user-defined operator has no equivalent on the device, so it is left to the MPI library.
  if (!op) return call;
  if (!reduces_by_mpi(*type, *op)) {
    return Error{"half and bfloat16 have no such operator", MPI_ERR_OP};
  }
  call.op = short_float(*type).ops[*op];
  call.sendtype = call.recvtype = MPI_UINT16_T;
  return call;
}

}  // namespace weft::gpu
