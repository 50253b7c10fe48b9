// Memory for matrices whose rows are read in random order. It is aligned, so that a row of 128
// bytes touches two cache lines and not three. It uses pages of 2 MiB, so that the processor finds
// most rows without walking the page table.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace rows {

template <class T>
struct Aligned {
  using value_type = T;

  Aligned() = default;
  template <class Other>
  explicit Aligned(const Aligned<Other>&) {}

  T* allocate(std::size_t count) {
    constexpr std::size_t line = 64, page = std::size_t{2} << 20;
    const bool large = count * sizeof(T) >= 2 * page;
    const std::size_t alignment = large ? page : line;
    const std::size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    void* place = std::aligned_alloc(alignment, bytes);
    if (!place) throw std::bad_alloc();
    if (large) madvise(place, bytes, MADV_HUGEPAGE);  // if the system refuses, pages are small
    return static_cast<T*>(place);
  }
  void deallocate(T* place, std::size_t) { std::free(place); }

  friend bool operator==(const Aligned&, const Aligned&) { return true; }
  friend bool operator!=(const Aligned&, const Aligned&) { return false; }
};

using Matrix = std::vector<double, Aligned<double>>;

}  // namespace rows
