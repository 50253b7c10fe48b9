// SegmentParts: a long segment of which each process maps what is used, part by part, for good.
// Why: addresses count where a system limits them or a user looks at them, also those that nobody
// uses; and with the memory of a whole machine mapped for each rank, there would be many.
// The first part is short, and each is as long as all before it together, so that there are few of
// them, and whoever knows an offset knows its part.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "shm/segment.h"

namespace weft {

class SegmentParts {
 public:
  static constexpr std::int64_t kFirst_bytes = 16 << 20;
  static constexpr int kMost = 20;
  // All of the first so many parts.
  static constexpr std::int64_t bytes_of_all(int parts) { return kFirst_bytes << (parts - 1); }

  static constexpr int part_with(std::int64_t offset) {
    return std::bit_width(static_cast<std::uint64_t>(offset / kFirst_bytes));
  }
  static constexpr std::int64_t begin_of(int part) { return part == 0 ? 0 : bytes_of_all(part); }
  static constexpr std::int64_t bytes_of(int part) {
    return part == 0 ? kFirst_bytes : bytes_of_all(part);
  }

  // Of which the first page is mapped, and which is as long as some parts are.
  explicit SegmentParts(Segment segment) : segment_(std::move(segment)) {}
  SegmentParts(const SegmentParts&) = delete;
  SegmentParts& operator=(const SegmentParts&) = delete;

  const Segment& segment() const { return segment_; }
  int count() const {
    return std::bit_width(static_cast<std::uint64_t>(segment_.bytes())) -
           std::bit_width(static_cast<std::uint64_t>(kFirst_bytes)) + 1;
  }

  // All are thread-safe.
  // Where the part lies in this process; nullptr: nowhere yet.
  std::byte* at(int part) const {
    return at_[static_cast<std::size_t>(part)].load(std::memory_order_acquire);
  }
  // The same, mapped now if need be; nullptr: refused.
  std::byte* map(int part);
  // Of an address in a mapped part; -1: in none.
  std::int64_t offset_of(const void* address) const;

 private:
  Segment segment_;
  std::mutex mutex_;  // held by who maps
  std::array<std::atomic<std::byte*>, kMost> at_{};
  std::atomic<const std::byte*> lowest_{nullptr}, end_{nullptr};  // of all that is mapped
};

}  // namespace weft
