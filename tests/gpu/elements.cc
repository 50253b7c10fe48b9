#include "elements.h"

#include <cstring>
#include <type_traits>

namespace weft::gpu {
namespace {

template <class F>
void with_type(weft_gpu_type type, const F& body) {
  switch (type) {
    case WEFT_GPU_INT8:
      return body(std::int8_t{});
    case WEFT_GPU_INT32:
      return body(std::int32_t{});
    case WEFT_GPU_INT64:
      return body(std::int64_t{});
    case WEFT_GPU_UINT16:
      return body(std::uint16_t{});
    case WEFT_GPU_FLOAT:
      return body(float{});
    default:
      return body(double{});
  }
}

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
T product(T a, Number factor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(factor));
  } else {
    return a * static_cast<T>(factor);
  }
}

}  // namespace

Bytes elements_of(weft_gpu_type type, const Numbers& numbers) {
  Bytes made(numbers.size() * element_bytes(type));
  with_type(type, [&](auto zero) {
    auto* const data = reinterpret_cast<decltype(zero)*>(made.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      data[i] = static_cast<decltype(zero)>(numbers[i]);
    }
  });
  return made;
}

void add_elements(weft_gpu_type type, const std::byte* from, std::byte* to, std::size_t count) {
  with_type(type, [&](auto zero) {
    const auto* const given = reinterpret_cast<const decltype(zero)*>(from);
    auto* const data = reinterpret_cast<decltype(zero)*>(to);
    for (std::size_t i = 0; i < count; ++i) data[i] = sum(data[i], given[i]);
  });
}

void affine_elements(weft_gpu_type type, std::byte* data, std::size_t count, Number factor,
                     Number addend) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    auto* const all = reinterpret_cast<T*>(data);
    for (std::size_t i = 0; i < count; ++i) {
      all[i] = sum(product(all[i], factor), static_cast<T>(addend));
    }
  });
}

std::string first_difference(weft_gpu_type type, const Bytes& found, const Bytes& right) {
  if (found.size() != right.size()) return "their lengths differ";
  if (found == right) return "";
  std::string said;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const auto* const one = reinterpret_cast<const T*>(found.data());
    const auto* const other = reinterpret_cast<const T*>(right.data());
    const auto are_same = [](T a, T b) {
      return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
    };
    for (std::size_t i = 0; i < found.size() / sizeof(T) && said.empty(); ++i) {
      if (are_same(one[i], other[i])) continue;
      said = "element " + std::to_string(i) + " is " + std::to_string(one[i]) + ", not " +
             std::to_string(other[i]);
    }
  });
  return said;
}

}  // namespace weft::gpu
