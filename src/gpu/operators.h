// Elementwise reductions of device data. The kernels use these functions, and so does an
// implementation on the host for tests, so CI runs the code that the device runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "weft_gpu.h"
#include "weft_gpu_device.h"

namespace weft::gpu {

WEFT_DEVICE float float_of_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
WEFT_DEVICE std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Half: a floating-point number in IEEE 754's 16-bit format. Conversions to it round to nearest,
// ties to even.
struct Half {
  std::uint16_t bits;

  WEFT_DEVICE float wide() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return float_of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x400u) return float_of_bits(sign | ((rest << 13) + (112u << 23)));
    // The value is subnormal; this conversion is exact.
    const float tiny = static_cast<float>(rest) * 0x1p-24f;
    return float_of_bits(sign | bits_of_float(tiny));
  }
  WEFT_DEVICE static Half of(float value) {
    const std::uint32_t all = bits_of_float(value), sign = all >> 16 & 0x8000u;
    const std::uint32_t rest = all & 0x7fffffffu;
    if (rest > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
    if (rest >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
    // The result is subnormal; the addition rounds it to a multiple of 2^-24.
    if (rest < 0x38800000u) {
      const float shifted = float_of_bits(rest) + 0.5f;
      return {static_cast<std::uint16_t>(sign | (bits_of_float(shifted) - bits_of_float(0.5f)))};
    }
    const std::uint32_t rounded = rest + 0xfffu + (rest >> 13 & 1u) - (112u << 23);
    return {static_cast<std::uint16_t>(sign | rounded >> 13)};
  }
};

// Bfloat16: the upper 16 bits of a float.
struct Bfloat16 {
  std::uint16_t bits;

  WEFT_DEVICE float wide() const { return float_of_bits(static_cast<std::uint32_t>(bits) << 16); }
  WEFT_DEVICE static Bfloat16 of(float value) {
    const std::uint32_t all = bits_of_float(value);
    if ((all & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(all >> 16 | 0x40u)};
    return {static_cast<std::uint16_t>((all + 0x7fffu + (all >> 16 & 1u)) >> 16)};
  }
};

// Combines two values of a type that has its own arithmetic. Returns `a` for an operator that the
// type lacks; supports() rejects such calls on the host before.
template <class T>
WEFT_DEVICE T combined_as(weft_gpu_op op, T a, T b) {
  switch (op) {
    case WEFT_GPU_SUM:
      return static_cast<T>(a + b);
    case WEFT_GPU_PROD:
      return static_cast<T>(a * b);
    case WEFT_GPU_MIN:
      return b < a ? b : a;
    case WEFT_GPU_MAX:
      return a < b ? b : a;
    case WEFT_GPU_LAND:
      return static_cast<T>(a != T(0) && b != T(0));
    case WEFT_GPU_LOR:
      return static_cast<T>(a != T(0) || b != T(0));
    case WEFT_GPU_LXOR:
      return static_cast<T>((a != T(0)) != (b != T(0)));
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == WEFT_GPU_BAND) return static_cast<T>(a & b);
    if (op == WEFT_GPU_BOR) return static_cast<T>(a | b);
    if (op == WEFT_GPU_BXOR) return static_cast<T>(a ^ b);
  }
  return a;
}

template <class T>
WEFT_DEVICE T combined(weft_gpu_op op, T a, T b) {
  // Integers are computed without sign, so that overflow wraps around.
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (op == WEFT_GPU_SUM)
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    if (op == WEFT_GPU_PROD) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
    return combined_as(op, a, b);
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {  // products would overflow an int
    return static_cast<T>(combined_as<std::uint32_t>(op, a, b));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return combined_as(op, a, b);
  } else {
    return T::of(combined_as(op, a.wide(), b.wide()));
  }
}

inline bool is_bitwise(weft_gpu_op op) {
  return op == WEFT_GPU_BAND || op == WEFT_GPU_BOR || op == WEFT_GPU_BXOR;
}
inline std::size_t element_bytes(weft_gpu_type type) {
  constexpr std::size_t kBytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
  return kBytes[type];
}
inline bool is_integer(weft_gpu_type type) {
  return type < WEFT_GPU_HALF;
}
inline bool supports(weft_gpu_type type, weft_gpu_op op) {
  return type >= 0 && type <= WEFT_GPU_DOUBLE && op >= 0 && op <= WEFT_GPU_BXOR &&
         (is_integer(type) || !is_bitwise(op));
}

// Lists the element types: the name in kernels, and the C++ type, in the order of weft_gpu_type.
// clang-format off
#define WEFT_GPU_TYPES(X) \
  X(int8, std::int8_t) \
  X(int16, std::int16_t) \
  X(int32, std::int32_t) \
  X(int64, std::int64_t) \
  X(uint8, std::uint8_t) \
  X(uint16, std::uint16_t) \
  X(uint32, std::uint32_t) \
  X(uint64, std::uint64_t) \
  X(half, Half) \
  X(bfloat16, Bfloat16) \
  X(float, float) \
  X(double, double)
// clang-format on

}  // namespace weft::gpu
