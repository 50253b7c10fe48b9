// The operators of reductions that both the kernels and the stand-in for CUDA's driver use.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "gpu/operators.h"
#include "ranks.h"

namespace weft::gpu {
namespace {

// Checks the conversion of all values of a 16-bit format, and the rounding between neighbouring
// values.
template <class T>
void check_rounding(std::uint16_t infinity) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const T value{static_cast<std::uint16_t>(bits)};
    if ((bits & 0x7fffu) > infinity) {
      ASSERT_TRUE(std::isnan(value.wide())) << bits;
      ASSERT_TRUE(std::isnan(T::of(value.wide()).wide())) << bits;
      continue;
    }
    ASSERT_EQ(T::of(value.wide()).bits, value.bits);
    if ((bits & 0x7fffu) + 1 >= infinity) continue;
    const T next{static_cast<std::uint16_t>(bits + 1)};
    const float middle = value.wide() / 2 + next.wide() / 2;
    const auto even = static_cast<std::uint16_t>(bits % 2 ? bits + 1 : bits);
    ASSERT_EQ(T::of(middle).bits, even) << bits;
    ASSERT_EQ(T::of(std::nextafter(middle, value.wide())).bits, value.bits) << bits;
    ASSERT_EQ(T::of(std::nextafter(middle, next.wide())).bits, next.bits) << bits;
  }
  ASSERT_EQ(T::of(std::numeric_limits<float>::max()).bits, infinity);
  ASSERT_EQ(T::of(-std::numeric_limits<float>::infinity()).bits, infinity | 0x8000u);
}

TEST(Reductions, HalfRoundsToTheNearest) {
  check_rounding<Half>(0x7c00);
  EXPECT_EQ(Half::of(65519.F).bits, 0x7bff);
  EXPECT_EQ(Half::of(65520.F).bits, 0x7c00);
}

TEST(Reductions, Bfloat16RoundsToTheNearest) {
  check_rounding<Bfloat16>(0x7f80);
}

template <class T>
void check_integers() {
  const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  EXPECT_EQ(combined<T>(WEFT_GPU_SUM, most, 1), least);  // both signed and unsigned sums wrap
  EXPECT_EQ(combined<T>(WEFT_GPU_PROD, most, most), T(1));
  EXPECT_EQ(combined<T>(WEFT_GPU_MIN, least, most), least);
  EXPECT_EQ(combined<T>(WEFT_GPU_MAX, least, most), most);
  EXPECT_EQ(combined<T>(WEFT_GPU_LAND, 2, 4), T(1));
  EXPECT_EQ(combined<T>(WEFT_GPU_LOR, 0, 0), T(0));
  EXPECT_EQ(combined<T>(WEFT_GPU_LXOR, 2, 4), T(0));
  EXPECT_EQ(combined<T>(WEFT_GPU_BAND, 6, 3), T(2));
  EXPECT_EQ(combined<T>(WEFT_GPU_BOR, 6, 3), T(7));
  EXPECT_EQ(combined<T>(WEFT_GPU_BXOR, 6, 3), T(5));
}

TEST(Reductions, IntegersWrap) {
  check_integers<std::int8_t>();
  check_integers<std::int16_t>();
  check_integers<std::int32_t>();
  check_integers<std::int64_t>();
  check_integers<std::uint8_t>();
  check_integers<std::uint16_t>();
  check_integers<std::uint32_t>();
  check_integers<std::uint64_t>();
}

TEST(Reductions, FloatsOfAllWidths) {
  EXPECT_EQ(combined(WEFT_GPU_SUM, 0.5, 0.25), 0.75);
  EXPECT_EQ(combined(WEFT_GPU_PROD, 0.5F, 3.F), 1.5F);
  EXPECT_EQ(combined(WEFT_GPU_MIN, Half::of(2), Half::of(-3)).wide(), -3);
  // Ties are rounded to even.
  EXPECT_EQ(combined(WEFT_GPU_SUM, Half::of(2048), Half::of(1)).wide(), 2048);
  EXPECT_EQ(combined(WEFT_GPU_SUM, Bfloat16::of(256), Bfloat16::of(3)).wide(), 260);
  EXPECT_EQ(combined(WEFT_GPU_LAND, Bfloat16::of(256), Bfloat16::of(0)).wide(), 0);
}

TEST(Reductions, OnlyIntegersHaveBits) {
  EXPECT_TRUE(supports(WEFT_GPU_UINT64, WEFT_GPU_BXOR));
  EXPECT_FALSE(supports(WEFT_GPU_HALF, WEFT_GPU_BAND));
  EXPECT_TRUE(supports(WEFT_GPU_HALF, WEFT_GPU_LXOR));
  EXPECT_FALSE(supports(static_cast<weft_gpu_type>(12), WEFT_GPU_SUM));
}

TEST(Reductions, EachTypeHasItsKernel) {
  use_device();
  Runtime runtime(**driver());
  const auto context = runtime.context();
  ASSERT_TRUE(context) << context.error().message;
  Stream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 1), kSuccess);
  // Every byte of each element is 1, whatever its size, so in the sum of two elements every byte is
  // 2.
  Numbers ones(6, 0x0101010101010101);
  for (int type = WEFT_GPU_INT8; type <= WEFT_GPU_UINT64; ++type) {
    Buffer in(ones, true), inout(ones, true);
    const std::size_t size = std::size_t(1) << (type % 4);
    const auto done = (*context)->launch_reduction(
        reinterpret_cast<void*>(in.address()), reinterpret_cast<void*>(inout.address()),
        ones.size() * sizeof(Number) / size, static_cast<weft_gpu_type>(type), WEFT_GPU_SUM,
        stream);
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(cuStreamSynchronize(stream), kSuccess);
    EXPECT_EQ(inout.content(), Numbers(6, 0x0202020202020202)) << type;
  }
  cuStreamDestroy_v2(stream);
}

// The bits of the results are compared with constants, independently of Weft's own conversions.
TEST(Reductions, EachFormatOfFloatsHasItsKernel) {
  struct Format {
    weft_gpu_type type;
    std::uint64_t zero, one, two, three, five, six;
  };
  constexpr Format kFormats[] = {
      {WEFT_GPU_HALF, 0, 0x3c00, 0x4000, 0x4200, 0x4500, 0x4600},
      {WEFT_GPU_BFLOAT16, 0, 0x3f80, 0x4000, 0x4040, 0x40a0, 0x40c0},
      {WEFT_GPU_FLOAT, 0, 0x3f800000, 0x40000000, 0x40400000, 0x40a00000, 0x40c00000},
      {WEFT_GPU_DOUBLE, 0, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000,
       0x4014000000000000, 0x4018000000000000}};
  constexpr std::size_t kCount = 300;  // more than one block
  use_device();
  Runtime runtime(**driver());
  Context* const context = *runtime.context();
  Stream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 1), kSuccess);
  for (const Format& f : kFormats) {
    const std::size_t size = element_bytes(f.type);
    const auto all = [&](std::uint64_t bits) {
      Bytes made(kCount * size);
      for (std::size_t i = 0; i < kCount; ++i) std::memcpy(made.data() + i * size, &bits, size);
      return made;
    };
    const std::pair<weft_gpu_op, std::uint64_t> kRight[] = {
        {WEFT_GPU_SUM, f.five},  {WEFT_GPU_PROD, f.six}, {WEFT_GPU_MIN, f.two},
        {WEFT_GPU_MAX, f.three}, {WEFT_GPU_LAND, f.one}, {WEFT_GPU_LOR, f.one},
        {WEFT_GPU_LXOR, f.zero}};
    for (const auto& [op, right] : kRight) {
      const Buffer in(f.type, all(f.three), true), inout(f.type, all(f.two), true);
      const auto done = context->launch_reduction(reinterpret_cast<void*>(in.address()),
                                                  reinterpret_cast<void*>(inout.address()), kCount,
                                                  f.type, op, stream);
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_EQ(cuStreamSynchronize(stream), kSuccess);
      EXPECT_EQ(inout.bytes(), all(right)) << f.type << ", " << op;
    }
  }
  cuStreamDestroy_v2(stream);
}

}  // namespace
}  // namespace weft::gpu
