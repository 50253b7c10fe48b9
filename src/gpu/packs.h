// Packs: units of 16 bytes in which kernels move aligned data. The kernels use these functions, and
// so does an implementation on the host for tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft_gpu_device.h"

namespace weft::gpu {

inline constexpr std::size_t kPackBytes = 16;

template <class T>
struct alignas(kPackBytes) Pack {
  static constexpr std::uint64_t kElements = kPackBytes / sizeof(T);
  T elements[kElements];
};

// Returns a pack with the elements from index `first` on. The last pack of the data may have fewer.
template <class T>
WEFT_DEVICE Pack<T> pack_of(const T* data, std::uint64_t first, std::uint64_t count) {
  if (reinterpret_cast<std::uintptr_t>(data) % kPackBytes == 0 &&
      first + Pack<T>::kElements <= count) {
    return *reinterpret_cast<const Pack<T>*>(data + first);
  }
  Pack<T> pack{};
  for (std::uint64_t i = 0; i < Pack<T>::kElements && first + i < count; ++i) {
    pack.elements[i] = data[first + i];
  }
  return pack;
}

template <class T>
WEFT_DEVICE void put(const Pack<T>& pack, T* data, std::uint64_t first, std::uint64_t count) {
  if (reinterpret_cast<std::uintptr_t>(data) % kPackBytes == 0 &&
      first + Pack<T>::kElements <= count) {
    *reinterpret_cast<Pack<T>*>(data + first) = pack;
    return;
  }
  for (std::uint64_t i = 0; i < Pack<T>::kElements && first + i < count; ++i) {
    data[first + i] = pack.elements[i];
  }
}

}  // namespace weft::gpu
