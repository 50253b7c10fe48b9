// Collectives of the types half and bfloat16.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "gpu_streams.h"

namespace streams {
namespace {

// Returns the bits of a number that the type can represent. mantissa: number of stored bits of the
// mantissa.
std::uint16_t bits_of(double number, int mantissa) {
  const int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  if (number == 0) return 0;
  int exponent = 0;
  const double fraction = 2 * std::frexp(std::abs(number), &exponent) - 1;  // in [0, 1)
  const auto stored = static_cast<int>(std::ldexp(fraction, mantissa));
  const int sign = number < 0 ? 0x8000 : 0;
  return static_cast<std::uint16_t>(sign | (exponent - 1 + bias) << mantissa | stored);
}

class ShortFloats {
 public:
  ShortFloats(weft_gpu_type type, int mantissa)
      : type_(weft_gpu_datatype(type)),
        kernels_type_(type),
        mantissa_(mantissa),
        big_(2 << mantissa) {}

  void run(int n) {
    check("allreduce", n, n, MPI_SUM, ranks, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iallreduce_enqueue(from, to, n, type_, MPI_SUM, world, stream, r);
    });
    check("allreduce", n, n, MPI_MAX, ranks, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iallreduce_enqueue(from, to, n, type_, MPI_MAX, world, stream, r);
    });
    check("scan", n, n, MPI_SUM, rank + 1, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iscan_enqueue(from, to, n, type_, MPI_SUM, world, stream, r);
    });
    check("exscan", n, n, MPI_MIN, rank, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iexscan_enqueue(from, to, n, type_, MPI_MIN, world, stream, r);
    });
    check("reduce", n, rank == 1 ? n : 0, MPI_SUM, ranks,
          [&](const int* from, int* to, weft_gpu_request* r) {
            return weft_ireduce_enqueue(from, to, n, type_, MPI_SUM, 1, world, stream, r);
          });
    check("reduce_scatter_block", n * ranks, n, MPI_SUM, ranks,
          [&](const int* from, int* to, weft_gpu_request* r) {
            return weft_ireduce_scatter_block_enqueue(from, to, n, type_, MPI_SUM, world, stream,
                                                      r);
          });
    check("prepared", n, n, MPI_SUM, ranks, [&](const int* from, int* to, weft_gpu_request* r) {
      const int code = weft_allreduce_init(from, to, n, type_, MPI_SUM, world, r);
      if (code == MPI_SUCCESS && expected_way) expect_way(weft_gpu_path_of(*r), expected_way);
      return code != MPI_SUCCESS ? code : weft_start_enqueue(*r, stream);
    });
    reduce_here(n);
  }

 private:
  using Pairs = std::vector<int>;  // two numbers of 16 bits in each int

  // Reduces by a kernel on this device, without a collective.
  void reduce_here(int n) {
    Buffer in(pairs(n, [this](std::size_t i) { return given(i, 1); }), kDevice);
    Buffer inout(pairs(n, [this](std::size_t i) { return given(i, 0); }), kDevice);
    good(weft_reduce_local_enqueue(in.data(), inout.data(), static_cast<std::size_t>(n),
                                   kernels_type_, WEFT_GPU_SUM, stream),
         "reduce");
    good(cuStreamSynchronize(stream), "synchronize");
    expect(inout.content() == pairs(n, [this](std::size_t i) { return right(i, MPI_SUM, 2); }),
           "a reduction of numbers with " + std::to_string(mantissa_) + " bits");
  }

  // Returns the contribution of a rank. Every fourth sum lies half-way between two numbers of the
  // type, and must be rounded to the even one.
  double given(std::size_t i, int of_rank) const {
    const std::size_t kind = i % 4;
    if (kind < 2) return of_rank == 0 ? big_ : of_rank == 1 ? (kind == 0 ? 1 : 3) : 0;
    if (kind == 2) return -(of_rank + 1) * static_cast<int>(i % 5);
    return 0.5 * (of_rank + 1);
  }
  // Returns the expected result over the first `of_ranks` ranks.
  double right(std::size_t i, MPI_Op op, int of_ranks) const {
    double result = given(i, 0);
    for (int other = 1; other < of_ranks; ++other) {
      const double one = given(i, other);
      if (op == MPI_SUM) result += one;
      if (op == MPI_MAX) result = std::max(result, one);
      if (op == MPI_MIN) result = std::min(result, one);
    }
    if (op == MPI_SUM && of_ranks > 1 && i % 4 < 2) return i % 4 == 0 ? big_ : big_ + 4;
    return result;
  }
  // Returns n numbers, which repeat after 20.
  template <class F>
  Pairs pairs(int n, const F& number) const {
    std::array<std::uint16_t, 20> bits{};
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = bits_of(number(i), mantissa_);
    Pairs all(static_cast<std::size_t>(n + 1) / 2);
    auto* const to = reinterpret_cast<std::byte*>(all.data());
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof bits[0];
    for (std::size_t at = 0; at < bytes; at += sizeof bits)
      std::memcpy(to + at, bits.data(), std::min(sizeof bits, bytes - at));
    return all;
  }
  template <class Call>
  void check(const char* name, int from_count, int count, MPI_Op op, int of_ranks,
             const Call& call) {
    Buffer from(pairs(from_count, [this](std::size_t i) { return given(i, rank); }), kDevice);
    Buffer to(pairs(std::max(count, 2), [](std::size_t) { return 0.0; }), kDevice);
    weft_gpu_request request = nullptr;
    good(call(from.data(), to.data(), &request), name);
    finish(&request);
    if (count == 0 || of_ranks == 0) return;  // the result is undefined
    const auto first = static_cast<std::size_t>(from_count > count ? rank * count : 0);
    expect(
        to.content() == pairs(count, [&](std::size_t i) { return right(first + i, op, of_ranks); }),
        std::string(name) + " of " + std::to_string(count) + " numbers with " +
            std::to_string(mantissa_) + " bits");
  }

  const MPI_Datatype type_;
  const weft_gpu_type kernels_type_;
  const int mantissa_;
  const int big_;  // from here on, neighbouring numbers of the type differ by 2
};

}  // namespace

void short_floats(bool in_one_kernel) {
  constexpr int kShort = 1003, kLong = 600'002;
  for (const int n : {kShort, kLong}) {
    if (n == kLong && is_quick) continue;
    expected_way = in_one_kernel && n == kShort ? "in one kernel" : nullptr;
    ShortFloats(WEFT_GPU_HALF, 10).run(n);
    ShortFloats(WEFT_GPU_BFLOAT16, 7).run(n);
  }
}

}  // namespace streams
