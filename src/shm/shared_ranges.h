// SharedRanges: all memory that this process shares with others on its node: heaps (SharedHeap) and
// windows of the MPI library (MPI_Win_allocate_shared), its own and theirs. Each range has a number
// that its processes agree on, and an address in each process; so a place is described to others by
// number and offset. A window is mapped by all its ranks. A heap is attached, and its parts are
// mapped, when a rank is first shown a place there; that may fail, so the ranks of a call must
// agree the first time (all_have).
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
    std::vector<int> ranks;  // ranks in MPI_COMM_WORLD that have it, sorted
    bool leaving = false;    // no longer shown; still found by its number
  };

  // All functions are thread-safe.
  void add(Range range);
  // Add this process's own heap, or another's, permanently. rank: the owner's, which is also the
  // heap's number.
  void add_own_heap(int rank, SegmentParts& parts, std::vector<int> ranks);
  void add_heap(int rank, SegmentParts& parts);
  // Registers a heap that may be created later: its rank writes `name` before it shows any place in
  // it, and it is attached when needed. Must not be used by a process with limited address space.
  void add_heap(int rank, const SegmentName* name);
  // leaving: the range is about to be freed, so none of its memory is shown any more; places
  // already shown are still found.
  void set_leaving(std::int64_t number, bool leaving);
  void remove(std::int64_t number);

  // Describes these bytes if all of `ranks` (sorted) have, or may have, the range that contains
  // them. to_origin: the distance from the first byte to the address from which others count.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks,
                    std::int64_t to_origin = 0) const;
  // Returns the local address of a shown place; nothing if it is in no range, nullptr if it cannot
  // be mapped.
  std::optional<std::byte*> find(const ShownBuffer& shown) const;
  // Records that all of `ranks` (sorted) have found a place of this process's heap, so that they
  // will find any other place in the same part.
  void all_have(const ShownBuffer& shown, std::span<const int> ranks);

 private:
  struct OwnHeap {
    std::int64_t number = 0;
    SegmentParts* parts = nullptr;                           // nullptr: no heap
    std::vector<int> ranks;                                  // ranks that may map it, sorted
    std::array<std::vector<int>, SegmentParts::kMost> have;  // ranks that have mapped it, by part
  };
  struct Heap {
    std::int64_t number;
    SegmentParts* parts;      // nullptr: not attached
    const SegmentName* name;  // name for attaching; nullptr if it cannot be attached
  };

  SegmentParts* attached(Heap& heap) const;
  void insert(const Heap& heap);
  Range* numbered(std::int64_t number);
  ShownBuffer shown_of_heap(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks,
                            std::int64_t to_origin) const;

  mutable std::mutex mutex_;  // guards the members below
  std::vector<Range> ranges_;
  OwnHeap own_;
  mutable std::vector<Heap> heaps_;  // sorted by number, including the own heap
  mutable std::vector<std::unique_ptr<SegmentParts>> attached_;
};

}  // namespace weft
