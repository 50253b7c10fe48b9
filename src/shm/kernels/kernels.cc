// Defines the loops that reduce and copy arrays. The compiler vectorises them, and compiles this
// file once per instruction set (CMakeLists.txt). The linker must not share code between these
// compilations, so everything is in an unnamed namespace, and no inline function of a library is
// used.
#include "shm/kernels/kernels.h"

#include "shm/kernels/small_floats.h"

namespace weft::WEFT_INSTRUCTION_SET {
namespace {

// A value of type T at any address, in memory that the application may use with any other type.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Stored {
  T value;
};

// Reduces arrays element by element. The pragma `simd` is right even if `out` or `also` is one of
// the operands, since iterations are independent.
template <class T, class Combine>
void combine(const void* lower, const void* higher, void* out, void* also, std::int64_t count) {
  const auto* a = static_cast<const Stored<T>*>(lower);
  const auto* b = static_cast<const Stored<T>*>(higher);
  auto* result = static_cast<Stored<T>*>(out);
  auto* second = static_cast<Stored<T>*>(also);
  if (!second) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) result[i].value = Combine()(a[i].value, b[i].value);
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    second[i].value = result[i].value = Combine()(a[i].value, b[i].value);
}

// Returns the kernel of an arithmetic operator. Integers wrap around (-fwrapv), even small ones,
// which C promotes to int.
template <class T>
Kernel arithmetic(Operator op) {
  using Sum = decltype([](T lower, T higher) { return T(lower + higher); });
  using Product = decltype([](T lower, T higher) { return T(lower * higher); });
  if (op == Operator::sum) return combine<T, Sum>;
  if (op == Operator::prod) return combine<T, Product>;
  return nullptr;
}

template <class T>
Kernel ordered(Operator op) {
  using Max = decltype([](T lower, T higher) { return higher > lower ? higher : lower; });
  using Min = decltype([](T lower, T higher) { return higher < lower ? higher : lower; });
  if (op == Operator::max) return combine<T, Max>;
  if (op == Operator::min) return combine<T, Min>;
  return arithmetic<T>(op);
}

template <class T>
Kernel logical(Operator op) {
  using And = decltype([](T lower, T higher) { return T((lower != 0) & (higher != 0)); });
  using Or = decltype([](T lower, T higher) { return T((lower != 0) | (higher != 0)); });
  using Xor = decltype([](T lower, T higher) { return T((lower != 0) ^ (higher != 0)); });
  if (op == Operator::land) return combine<T, And>;
  if (op == Operator::lor) return combine<T, Or>;
  if (op == Operator::lxor) return combine<T, Xor>;
  return nullptr;
}

template <class T>
Kernel bitwise(Operator op) {
  using And = decltype([](T lower, T higher) { return T(lower & higher); });
  using Or = decltype([](T lower, T higher) { return T(lower | higher); });
  using Xor = decltype([](T lower, T higher) { return T(lower ^ higher); });
  if (op == Operator::band) return combine<T, And>;
  if (op == Operator::bor) return combine<T, Or>;
  if (op == Operator::bxor) return combine<T, Xor>;
  return nullptr;
}

template <class T>
Kernel integer(Operator op) {
  if (const Kernel kernel = ordered<T>(op)) return kernel;
  if (const Kernel kernel = logical<T>(op)) return kernel;
  return bitwise<T>(op);
}

template <class Value>
struct Pair {
  Value value;
  int index;
};

// Reduces arrays of (value, index) pairs, for maxloc and minloc. Better: a function object that
// returns whether the lower operand's value wins. Padding in the result is left unchanged.
template <class Value, class Better>
void locate(const void* lower, const void* higher, void* out, void* also, std::int64_t count) {
  const auto* a = static_cast<const Stored<Pair<Value>>*>(lower);
  const auto* b = static_cast<const Stored<Pair<Value>>*>(higher);
  auto* result = static_cast<Stored<Pair<Value>>*>(out);
  auto* second = static_cast<Stored<Pair<Value>>*>(also ? also : out);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const Pair<Value> x = a[i].value, y = b[i].value;
    const bool better = Better()(x.value, y.value);
    const int tied = x.index < y.index ? x.index : y.index;
    const int index = x.value == y.value ? tied : y.index;
    second[i].value.value = result[i].value.value = better ? x.value : y.value;
    second[i].value.index = result[i].value.index = better ? x.index : index;
  }
}

template <class Value>
Kernel pair(Operator op) {
  using Greater = decltype([](Value lower, Value higher) { return lower > higher; });
  using Less = decltype([](Value lower, Value higher) { return lower < higher; });
  if (op == Operator::maxloc) return locate<Value, Greater>;
  if (op == Operator::minloc) return locate<Value, Less>;
  return nullptr;
}

// The complex types of C are used, since a product with an infinity is infinite there (annex G of
// C), as in the MPI libraries.
__extension__ using ComplexFloat = __complex__ float;
__extension__ using ComplexDouble = __complex__ double;
__extension__ using ComplexLongDouble = __complex__ long double;

}  // namespace

// Copies `bytes` bytes by vector instructions. `to` is aligned to vectors in all iterations except
// the first and the last one, which overlaps the one before. `bytes` must be at least the number
// that one iteration copies.
void copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  struct [[gnu::packed, gnu::may_alias]] Vector {
    long long words __attribute__((vector_size(32)));
  };
  struct Four {
    Vector vectors[4];
  };
  constexpr auto kStep = static_cast<std::int64_t>(sizeof(Four));
  const auto copy_at = [&](std::int64_t at) {
    const auto* source = reinterpret_cast<const Vector*>(from + at);
    auto* target = reinterpret_cast<Vector*>(to + at);
    const Vector a = source[0], b = source[1], c = source[2], d = source[3];
    target[0] = a;
    target[1] = b;
    target[2] = c;
    target[3] = d;
  };
  copy_at(0);
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kStep);
  for (std::int64_t at = kStep - misaligned; at < bytes - kStep; at += kStep) copy_at(at);
  copy_at(bytes - kStep);
}

Kernel find_kernel(Element element, Operator op) {
  switch (element) {
    case Element::int8:
      return integer<std::int8_t>(op);
    case Element::int16:
      return integer<std::int16_t>(op);
    case Element::int32:
      return integer<std::int32_t>(op);
    case Element::int64:
      return integer<std::int64_t>(op);
    case Element::uint8:
      return integer<std::uint8_t>(op);
    case Element::uint16:
      return integer<std::uint16_t>(op);
    case Element::uint32:
      return integer<std::uint32_t>(op);
    case Element::uint64:
      return integer<std::uint64_t>(op);
    case Element::byte:
      return bitwise<std::uint8_t>(op);
    case Element::boolean:
      return logical<std::uint8_t>(op);
    case Element::float16:
      return ordered<Float16>(op);
    case Element::bfloat16:
      return ordered<Bfloat16>(op);
    case Element::float32:
      return ordered<float>(op);
    case Element::float64:
      return ordered<double>(op);
    case Element::long_double:
      return ordered<long double>(op);
    case Element::float_complex:
      return arithmetic<ComplexFloat>(op);
    case Element::double_complex:
      return arithmetic<ComplexDouble>(op);
    case Element::long_double_complex:
      return arithmetic<ComplexLongDouble>(op);
    case Element::float_int:
      return pair<float>(op);
    case Element::double_int:
      return pair<double>(op);
    case Element::long_int:
      return pair<long>(op);
    case Element::two_int:
      return pair<int>(op);
    case Element::short_int:
      return pair<short>(op);
    case Element::long_double_int:
      return pair<long double>(op);
  }
  return nullptr;
}

}  // namespace weft::WEFT_INSTRUCTION_SET
