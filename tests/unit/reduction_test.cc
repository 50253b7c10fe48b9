// Compares every reduction kernel of every instruction set of this processor with a plain loop: all
// short lengths, any alignment, in place, ties, NaN, and nothing written beyond the end.
#include "shm/reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace weft {
namespace {

template <class Value>
struct Pair {
  Value value;
  int index;
};

// Compares values: all NaNs are equal; zeros of different signs are not.
template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  else
    return a == b;
}
template <class T>
bool same(std::complex<T> a, std::complex<T> b) {
  return same(a.real(), b.real()) && same(a.imag(), b.imag());
}
template <class T>
bool same(Pair<T> a, Pair<T> b) {
  return same(a.value, b.value) && a.index == b.index;
}

std::mt19937_64& random_bits() {
  static std::mt19937_64 generator(20240607);
  return generator;
}

// Takes few different values, so that ties happen, and all special ones.
template <class T>
void fill(T& value) {
  const auto bits = random_bits()();
  if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    const T special[] = {T(0),
                         -T(0),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::max(),
                         Limits::min(),
                         Limits::denorm_min(),
                         Limits::quiet_NaN(),
                         Limits::lowest()};
    value = bits % 4 == 0 ? special[bits / 4 % std::size(special)]
                          : static_cast<T>(static_cast<std::int64_t>(bits)) / T(1 << 20);
  } else {
    value = static_cast<T>(bits % 3 == 0 ? bits / 3 % 4 : bits >> 8);
  }
}
template <class T>
void fill(std::complex<T>& value) {
  T parts[2];
  for (T& part : parts) fill(part);
  value = {parts[0], parts[1]};
}
template <class T>
void fill(Pair<T>& pair) {
  fill(pair.value);
  pair.index = static_cast<int>(random_bits()() % 3);
}

// `count` elements at an address with the remainder `shift`, with a border behind them.
template <class T>
class Array {
 public:
  Array(std::int64_t count, std::size_t shift)
      : shift_(shift), count_(static_cast<std::size_t>(count)), bytes_(end() + 64, kBorder) {
    for (std::size_t i = 0; i < count_; ++i) {
      T value{};
      fill(value);
      std::memcpy(data() + i * sizeof(T), &value, sizeof(T));
    }
  }
  unsigned char* data() { return bytes_.data() + shift_; }
  T operator[](std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + shift_ + i * sizeof(T), sizeof(T));
    return value;
  }
  bool border_untouched() const {
    const auto beyond = [](unsigned char byte) { return byte == kBorder; };
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(shift_),
                       beyond) &&
           std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(end()), bytes_.end(), beyond);
  }

 private:
  static constexpr unsigned char kBorder = 0xa5;
  std::size_t end() const { return shift_ + count_ * sizeof(T); }

  std::size_t shift_;
  std::size_t count_;
  std::vector<unsigned char> bytes_;
};

enum class Out { nowhere, apart, lower, higher };

// A pointer, so that compare() is compiled once for each type, not for each operator.
template <class T>
using Reference = T (*)(T, T);

// `also` is the second place to which the kernel writes the result.
template <class T>
void compare(Kernel kernel, std::int64_t count, std::size_t shift, Out out, Out also,
             Reference<T> reference) {
  Array<T> lower(count, shift), higher(count, shift / 2), apart(count, shift / 3);
  Array<T> second(count, shift / 4);
  const Array<T> lower_before = lower, higher_before = higher;
  const auto place = [&](Out which, Array<T>& elsewhere) {
    return which == Out::lower ? &lower : which == Out::higher ? &higher : &elsewhere;
  };
  std::vector<Array<T>*> results = {place(out, apart)};
  if (also != Out::nowhere) results.push_back(place(also, second));
  kernel(lower.data(), higher.data(), results.front()->data(),
         also == Out::nowhere ? nullptr : results.back()->data(), count);
  for (const Array<T>* result : results) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      ASSERT_TRUE(same((*result)[i], reference(lower_before[i], higher_before[i])))
          << "element " << i << " of " << count << ", shift " << shift;
    ASSERT_TRUE(result->border_untouched()) << count << ", shift " << shift;
  }
}

constexpr InstructionSet kSets[] = {InstructionSet::baseline, InstructionSet::avx2};

template <class T>
void check(Element element, Operator op, Reference<T> reference) {
  ASSERT_NE(find_kernel(element, op), nullptr);
  EXPECT_EQ(bytes_of(element), static_cast<std::int64_t>(sizeof(T)));
  std::vector<std::int64_t> counts = {0, 1, 2, 3, 7, 8, 9, 1000};
  for (int count = 31; count <= 65; ++count) counts.push_back(count);
  for (const InstructionSet set : kSets) {
    const Kernel kernel = find_kernel(element, op, set);
    if (!kernel) continue;
    SCOPED_TRACE("element " + std::to_string(static_cast<int>(element)) + ", operator " +
                 std::to_string(static_cast<int>(op)) + ", instruction set " +
                 std::to_string(static_cast<int>(set)));
    for (const std::int64_t count : counts)
      for (const std::size_t shift : {std::size_t{0}, sizeof(T), std::size_t{13}})
        for (const Out out : {Out::apart, Out::lower, Out::higher})
          for (const Out also : {Out::nowhere, Out::apart, Out::lower, Out::higher}) {
            if (also == out && out != Out::apart) continue;
            ASSERT_NO_FATAL_FAILURE(compare(kernel, count, shift, out, also, reference));
          }
  }
}

template <class T>
T wide(T value) {
  return value;
}
template <class T>
requires std::is_integral_v<T> std::uint64_t wide(T value) {
  return static_cast<std::uint64_t>(value);
}

template <class T>
void check_arithmetic(Element e) {
  check<T>(e, Operator::sum, [](T a, T b) { return static_cast<T>(wide(a) + wide(b)); });
  check<T>(e, Operator::prod, [](T a, T b) { return static_cast<T>(wide(a) * wide(b)); });
}

template <class T>
void check_ordered(Element e) {
  check_arithmetic<T>(e);
  check<T>(e, Operator::max, [](T a, T b) { return a < b ? b : a; });
  check<T>(e, Operator::min, [](T a, T b) { return b < a ? b : a; });
}

template <class T>
void check_logical(Element e) {
  check<T>(e, Operator::land, [](T a, T b) { return static_cast<T>(a && b); });
  check<T>(e, Operator::lor, [](T a, T b) { return static_cast<T>(a || b); });
  check<T>(e, Operator::lxor, [](T a, T b) { return static_cast<T>(!a != !b); });
}

template <class T>
void check_bitwise(Element e) {
  check<T>(e, Operator::band, [](T a, T b) { return static_cast<T>(a & b); });
  check<T>(e, Operator::bor, [](T a, T b) { return static_cast<T>(a | b); });
  check<T>(e, Operator::bxor, [](T a, T b) { return static_cast<T>(a ^ b); });
}

template <class T>
void check_integer(Element e) {
  check_ordered<T>(e);
  check_logical<T>(e);
  check_bitwise<T>(e);
}

template <class Value>
void check_pair(Element e) {
  using P = Pair<Value>;
  static constexpr auto tied = [](P a, P b) { return P{b.value, std::min(a.index, b.index)}; };
  check<P>(e, Operator::maxloc, [](P a, P b) {
    return a.value > b.value ? a : a.value == b.value ? tied(a, b) : b;
  });
  check<P>(e, Operator::minloc, [](P a, P b) {
    return a.value < b.value ? a : a.value == b.value ? tied(a, b) : b;
  });
}

TEST(Reduction, Integers) {
  check_integer<std::int8_t>(Element::int8);
  check_integer<std::int16_t>(Element::int16);
  check_integer<std::int32_t>(Element::int32);
  check_integer<std::int64_t>(Element::int64);
  check_integer<std::uint8_t>(Element::uint8);
  check_integer<std::uint16_t>(Element::uint16);
  check_integer<std::uint32_t>(Element::uint32);
  check_integer<std::uint64_t>(Element::uint64);
}

TEST(Reduction, BytesAndLogicals) {
  check_bitwise<std::uint8_t>(Element::byte);
  check_logical<std::uint8_t>(Element::boolean);
}

TEST(Reduction, FloatingPoint) {
  check_ordered<float>(Element::float32);
  check_ordered<double>(Element::float64);
  check_ordered<long double>(Element::long_double);
}

TEST(Reduction, Complex) {
  check_arithmetic<std::complex<float>>(Element::float_complex);
  check_arithmetic<std::complex<double>>(Element::double_complex);
  check_arithmetic<std::complex<long double>>(Element::long_double_complex);
}

TEST(Reduction, ValuesWithIndex) {
  check_pair<float>(Element::float_int);
  check_pair<double>(Element::double_int);
  check_pair<long>(Element::long_int);
  check_pair<int>(Element::two_int);
  check_pair<short>(Element::short_int);
  check_pair<long double>(Element::long_double_int);
}

TEST(Reduction, DefinedWhereMpiSaysSo) {
  const auto operators = [](Element element) {
    std::string defined;
    for (int op = 0; op < kOperators; ++op)
      defined += find_kernel(element, static_cast<Operator>(op)) ? '1' : '0';
    return defined;
  };
  for (int e = 0; e < kElements; ++e) {
    const auto element = static_cast<Element>(e);
    const char* expected = element <= Element::uint64                ? "111111111100"
                           : element == Element::byte                ? "000000011100"
                           : element == Element::boolean             ? "000011100000"
                           : element <= Element::long_double         ? "111100000000"
                           : element <= Element::long_double_complex ? "110000000000"
                                                                     : "000000000011";
    EXPECT_EQ(operators(element), expected) << e;
  }
}

// A 16-bit floating-point type: a sign, `exponent_bits`, and the rest as fraction.
struct SmallFloat {
  Element element;
  int exponent_bits;

  int fraction_bits() const { return 15 - exponent_bits; }
  bool is_nan(std::uint16_t bits) const { return (bits & 0x7fff) > infinity(); }
  int infinity() const { return ((1 << exponent_bits) - 1) << fraction_bits(); }
  // Returns infinity as the value after the greatest finite one, as rounding treats it.
  long double value(std::uint16_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits & 0x7fff) >> fraction_bits();
    const int fraction = bits & ((1 << fraction_bits()) - 1);
    const int digits = exponent ? fraction + (1 << fraction_bits()) : fraction;
    const int scale = std::max(exponent, 1) - bias - fraction_bits();
    return std::ldexp(static_cast<long double>(bits & 0x8000 ? -digits : digits), scale);
  }
  // Returns whether no neighbour of `bits` is nearer to `exact`, nor equally near and even.
  bool nearest(std::uint16_t bits, long double exact) const {
    if ((bits & 0x7fff) == infinity() && std::abs(exact) >= std::abs(value(bits))) return true;
    const long double error = std::abs(value(bits) - exact);
    for (const int step : {-1, 1}) {
      const int magnitude = (bits & 0x7fff) + step;
      if (magnitude < 0 || magnitude > infinity()) continue;
      const auto neighbour = static_cast<std::uint16_t>((bits & 0x8000) | magnitude);
      const long double other = std::abs(value(neighbour) - exact);
      if (other < error || (other == error && bits % 2 == 1)) return false;
    }
    return true;
  }
};

constexpr SmallFloat kSmallFloats[] = {{Element::float16, 5}, {Element::bfloat16, 8}};

std::vector<std::uint16_t> random_small_floats(std::size_t count) {
  std::vector<std::uint16_t> values(count);
  for (auto& value : values) value = static_cast<std::uint16_t>(random_bits()());
  return values;
}

using Combine = long double (*)(long double, long double);

void check_rounding(const SmallFloat& type, Operator op, Kernel kernel, Combine combine) {
  const auto lower = random_small_floats(1 << 18), higher = random_small_floats(1 << 18);
  std::vector<std::uint16_t> result(lower.size());
  kernel(lower.data(), higher.data(), result.data(), nullptr,
         static_cast<std::int64_t>(lower.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto finite = [&](std::uint16_t bits) { return (bits & 0x7fff) < type.infinity(); };
    if (!finite(lower[i]) || !finite(higher[i])) continue;
    const long double exact = combine(type.value(lower[i]), type.value(higher[i]));
    ASSERT_TRUE(!type.is_nan(result[i]) && type.nearest(result[i], exact))
        << std::hex << lower[i] << " and " << higher[i] << " give " << result[i] << ", operator "
        << static_cast<int>(op);
  }
}

// long double is exact, except for sums of a large and a tiny number, whose rounding is the same.
TEST(Reduction, SmallFloatsAreRoundedToNearestEven) {
  for (const SmallFloat& type : kSmallFloats)
    for (const InstructionSet set : kSets)
      if (find_kernel(type.element, Operator::sum, set)) {
        check_rounding(type, Operator::sum, find_kernel(type.element, Operator::sum, set),
                       [](long double a, long double b) { return a + b; });
        check_rounding(type, Operator::prod, find_kernel(type.element, Operator::prod, set),
                       [](long double a, long double b) { return a * b; });
      }
}

TEST(Reduction, SmallFloatsKeepEveryValue) {
  std::vector<std::uint16_t> all(1 << 16), ones(1 << 16), result(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const SmallFloat& type : kSmallFloats) {
    const auto one = ((1 << (type.exponent_bits - 1)) - 1) << type.fraction_bits();
    std::fill(ones.begin(), ones.end(), static_cast<std::uint16_t>(one));
    for (const InstructionSet set : kSets)
      if (const Kernel times = find_kernel(type.element, Operator::prod, set)) {
        times(all.data(), ones.data(), result.data(), nullptr, 1 << 16);
        for (std::size_t i = 0; i < all.size(); ++i)
          ASSERT_TRUE(type.is_nan(all[i]) ? type.is_nan(result[i]) : result[i] == all[i]) << i;
      }
  }
}

TEST(Reduction, SmallFloatsAreOrderedByValue) {
  const auto a = random_small_floats(1 << 14), b = random_small_floats(1 << 14);
  std::vector<std::uint16_t> result(a.size());
  for (const SmallFloat& type : kSmallFloats)
    for (const InstructionSet set : kSets)
      for (const Operator op : {Operator::max, Operator::min})
        if (const Kernel kernel = find_kernel(type.element, op, set)) {
          kernel(a.data(), b.data(), result.data(), nullptr, static_cast<std::int64_t>(a.size()));
          for (std::size_t i = 0; i < a.size(); ++i) {
            const bool unordered = type.is_nan(a[i]) || type.is_nan(b[i]);
            const long double x = type.value(a[i]), y = type.value(b[i]);
            const bool second = !unordered && (op == Operator::max ? y > x : y < x);
            ASSERT_EQ(result[i], second ? b[i] : a[i]) << std::hex << a[i] << " " << b[i];
          }
        }
}

}  // namespace
}  // namespace weft
