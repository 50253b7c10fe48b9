// The 16-bit floating-point types, stored in 16 bits and computed as float. Each operation is then
// rounded once, correctly, since float has more than twice their digits. kernels.cc includes this
// file once per instruction set, so everything is in an unnamed namespace. The types are packed,
// since Stored<T> may lie at any address.
#pragma once

#include <cstdint>

namespace weft {
namespace {

// Converts a float to its bits without calling a library function, which the linker might share
// between instruction sets.
inline std::uint32_t bits_of(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
inline float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// bfloat16: the upper 16 bits of a float.
struct [[gnu::packed]] Bfloat16 {
  std::uint16_t bits;

  Bfloat16() = default;
  explicit Bfloat16(float value) {
    const std::uint32_t all = bits_of(value);
    const std::uint32_t rounded = all + 0x7fff + ((all >> 16) & 1);
    bits = static_cast<std::uint16_t>((value != value ? all | 0x400000 : rounded) >> 16);
  }
  operator float() const { return float_of(std::uint32_t{bits} << 16); }
};

// IEEE 754 binary16: 1 sign bit, 5 exponent bits, 10 fraction bits.
struct [[gnu::packed]] Float16 {
  std::uint16_t bits;

  Float16() = default;
  // Converts from float. If the result is subnormal, 0.5 is added first: the last digit of the sum
  // then equals that of the result, so that the addition rounds correctly.
  explicit Float16(float value) {
    const std::uint32_t sign = bits_of(value) & 0x80000000;
    const std::uint32_t all = bits_of(value) ^ sign;
    const std::uint32_t normal = (all - (112u << 23) + 0xfff + ((all >> 13) & 1)) >> 13;
    const std::uint32_t subnormal = bits_of(float_of(all) + 0.5f) - bits_of(0.5f);
    const std::uint32_t infinite = all > 0x7f800000 ? 0x7e00 : 0x7c00;
    const std::uint32_t finite = all < (113u << 23) ? subnormal : normal;
    const std::uint32_t rest = all < (143u << 23) ? finite : infinite;
    bits = static_cast<std::uint16_t>(sign >> 16 | rest);
  }
  // Converts to float. If the value is subnormal, its fraction is put into the last digits of 0.5,
  // and 0.5 is subtracted. No subnormal float occurs, so programs that flush subnormal floats to
  // zero get the same result.
  operator float() const {
    const std::uint32_t all = bits & 0x7fffu;
    const std::uint32_t subnormal = bits_of(float_of(bits_of(0.5f) + all) - 0.5f);
    const std::uint32_t normal = (all << 13) + (112u << 23);
    const std::uint32_t infinite = (all << 13) | 0x7f800000;
    const std::uint32_t finite = all < 0x0400 ? subnormal : normal;
    return float_of((all < 0x7c00 ? finite : infinite) | (bits & 0x8000u) << 16);
  }
};

}  // namespace
}  // namespace weft
