// SharedRanges: all memory that this process shares with others of its node, its own and theirs:
// heaps (SharedHeap) and windows of the MPI library's (MPI_Win_allocate_shared).
// Each has a number that its processes agree on, and in each process an address of its own; so a
// place in it is told to others as number and offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace weft {

class SharedRanges {
 public:
  struct Range {
    std::int64_t number = 0;
    std::byte* begin = nullptr;
    std::int64_t bytes = 0;
    std::vector<int> ranks;  // that have it, by rank in MPI_COMM_WORLD, in order
    bool leaving = false;    // found by its number only
  };

  // All are thread-safe.
  void add(Range range);
  // leaving: from now on none of its memory is shown, since it is about to go; what others have
  // shown there is still found.
  void set_leaving(std::int64_t number, bool leaving);
  void remove(std::int64_t number);

  // What to show of these bytes, if all of `ranks` (in order) have the range in which they lie.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks) const;
  // Where that lies here; nothing if it lies nowhere.
  std::optional<std::byte*> find(const ShownBuffer& shown) const;

 private:
  Range* numbered(std::int64_t number);

  mutable std::mutex mutex_;  // guards ranges_
  std::vector<Range> ranges_;
};

}  // namespace weft
