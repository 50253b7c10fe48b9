// SegmentParts: a long shared-memory segment of which each process maps only the parts in use, and
// never unmaps them. Mapping a whole machine's memory for each rank would take many addresses, and
// even unused addresses count if a system limits them or a user looks at them. The first part is
// short, and each further one is as long as all before it together: so there are few parts, and an
// offset determines its part.
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
  // Returns the bytes of parts 0, …, parts - 1 together.
  static constexpr std::int64_t bytes_of_all(int parts) { return kFirst_bytes << (parts - 1); }

  static constexpr int part_with(std::int64_t offset) {
    return std::bit_width(static_cast<std::uint64_t>(offset / kFirst_bytes));
  }
  static constexpr std::int64_t begin_of(int part) { return part == 0 ? 0 : bytes_of_all(part); }
  static constexpr std::int64_t bytes_of(int part) {
    return part == 0 ? kFirst_bytes : bytes_of_all(part);
  }

  // The segment must have only its first page mapped. It must be as long as a whole number of
  // parts.
  explicit SegmentParts(Segment segment) : segment_(std::move(segment)) {}
  SegmentParts(const SegmentParts&) = delete;
  SegmentParts& operator=(const SegmentParts&) = delete;

  const Segment& segment() const { return segment_; }
  int count() const {
    return std::bit_width(static_cast<std::uint64_t>(segment_.bytes())) -
           std::bit_width(static_cast<std::uint64_t>(kFirst_bytes)) + 1;
  }

  // Returns the address at which this process maps the part; nullptr if it does not map it. All
  // functions of this class are thread-safe.
  std::byte* at(int part) const {
    return at_[static_cast<std::size_t>(part)].load(std::memory_order_acquire);
  }
  // Returns the address of the part, after mapping it if necessary; nullptr if the system refuses.
  std::byte* map(int part);
  // Returns the offset in the segment of an address in a mapped part; -1 if the address is in none.
  std::int64_t offset_of(const void* address) const;

 private:
  Segment segment_;
  std::mutex mutex_;  // held while a part is mapped
  std::array<std::atomic<std::byte*>, kMost> at_{};
  // Lowest address of all mapped parts, and the address behind the last of them.
  std::atomic<const std::byte*> lowest_{nullptr}, end_{nullptr};
};

}  // namespace weft
