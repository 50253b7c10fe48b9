// SharedRanges: all memory that this process shares with others of its node, its own and theirs:
// heaps (SharedHeap) and windows of the MPI library's (MPI_Win_allocate_shared).
// Each has a number that its processes agree on, and in each process an address of its own; so a
// place in it is told to others as number and offset. A window has been mapped by all its ranks; a
// heap is attached and its parts are mapped when a rank is shown something there, which may fail,
// so that the ranks of a call have to agree the first time (all_have).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "shm/segment_parts.h"

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
  // This process's own heap, or another's, which stay for good. number: of its rank.
  void add_own_heap(int rank, SegmentParts& parts, std::vector<int> ranks);
  void add_heap(int rank, SegmentParts& parts);
  // One that may come: its rank writes here where it lies before it shows anything of it, and
  // nothing is attached before that is needed. Not by a process with a limit on its addresses.
  void add_heap(int rank, const SegmentName* name);
  // leaving: from now on none of its memory is shown, since it is about to go; what others have
  // shown there is still found.
  void set_leaving(std::int64_t number, bool leaving);
  void remove(std::int64_t number);

  // What to show of these bytes, if all of `ranks` (in order) have the range in which they lie, or
  // may have it. to_origin: from the first byte to the place that others count from.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks,
                    std::int64_t to_origin = 0) const;
  // Where that lies here; nothing if it lies nowhere, nullptr if it cannot be mapped.
  std::optional<std::byte*> find(const ShownBuffer& shown) const;
  // All of `ranks` (in order) have found what this process has shown of its heap; so they find all
  // that it will ever show of the same part.
  void all_have(const ShownBuffer& shown, std::span<const int> ranks);

 private:
  struct OwnHeap {
    std::int64_t number = 0;
    SegmentParts* parts = nullptr;                           // nullptr: there is none
    std::vector<int> ranks;                                  // that may map it, in order
    std::array<std::vector<int>, SegmentParts::kMost> have;  // of these, those that have, by part
  };
  struct Heap {
    std::int64_t number;
    SegmentParts* parts;      // nullptr: not attached
    const SegmentName* name;  // else; nullptr: it cannot be
  };

  SegmentParts* attached(Heap& heap) const;
  void insert(const Heap& heap);
  Range* numbered(std::int64_t number);
  ShownBuffer shown_of_heap(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks,
                            std::int64_t to_origin) const;

  mutable std::mutex mutex_;  // guards the rest
  std::vector<Range> ranges_;
  OwnHeap own_;
  mutable std::vector<Heap> heaps_;  // by number, the own one included
  mutable std::vector<std::unique_ptr<SegmentParts>> attached_;
};

}  // namespace weft
