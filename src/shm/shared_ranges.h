// SharedRanges: knows all memory that this process shares with others on its node, both its own and
// theirs: heaps (SharedHeap) and windows of the MPI library (MPI_Win_allocate_shared). Each such
// range has a number that its processes agree on, and an address in each process; so a place is
// described to others by number and offset. A window is mapped by all its ranks. A heap is
// attached, and its parts are mapped, when a rank is first told of a place there; that may fail, so
// the ranks of a call must agree the first time (all_have).
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
    std::vector<int> ranks;  // ranks in MPI_COMM_WORLD that map it, sorted
    bool leaving = false;    // true: not described to others any more, but found by its number
  };

  // Adds a window. All functions of this class are thread-safe.
  void add(Range range);
  // Add this process's own heap, or another process's heap, permanently. rank: the owner's, which
  // is also the heap's number.
  void add_own_heap(int rank, SegmentParts& parts, std::vector<int> ranks);
  void add_heap(int rank, SegmentParts& parts);
  // Registers a heap that another rank may create later. That rank writes `name` before it tells
  // others of any place in the heap, and this process attaches the heap when needed. Must not be
  // used by a process with limited address space.
  void add_heap(int rank, const SegmentName* name);
  // leaving: true if the range is about to be freed, so that none of its memory is described to
  // others any more; places described earlier are still found. false: the range stays.
  void set_leaving(std::int64_t number, bool leaving);
  void remove(std::int64_t number);

  // Describes these bytes to others if all of `ranks` (sorted) map, or may map, the range that
  // contains them. to_origin: the distance from the first byte to the address from which others
  // count.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks,
                    std::int64_t to_origin = 0) const;
  // Returns the local address of a place that another rank has described; nothing if it is in no
  // range, nullptr if it cannot be mapped.
  std::optional<std::byte*> find(const ShownBuffer& shown) const;
  // Records that all of `ranks` (sorted) have found a place of this process's heap, so that they
  // will find any other place in the same part.
  void all_have(const ShownBuffer& shown, std::span<const int> ranks);

 private:
  struct OwnHeap {
    std::int64_t number = 0;
    SegmentParts* parts = nullptr;  // this process's own heap; nullptr: none
    std::vector<int> ranks;         // ranks that may map it, sorted
    std::array<std::vector<int>, SegmentParts::kMost> have;  // ranks that have mapped it, by part
  };
  struct Heap {
    std::int64_t number;
    SegmentParts* parts;      // mapped parts; nullptr: the heap is not attached
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
