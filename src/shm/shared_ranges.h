// SharedRanges: knows all memory that this process shares with others on its node, both its own and
// theirs: heaps (SharedHeap) and windows of the MPI library (MPI_Win_allocate_shared). Each such
// range has a number that is equal in all processes, and an address in each process; so a place is
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
    std::vector<int> ranks;  // sorted ranks in MPI_COMM_WORLD that map the range
    // True if the range is not described to others any more, but still found by its number.
    bool leaving = false;
  };

  // Adds a window. All functions of this class are thread-safe.
  void add(Range range);
  // add_own_heap() adds this process's own heap, and add_heap() that of another process. Heaps are
  // never removed. rank: the owner's rank in MPI_COMM_WORLD, which is also the number of the heap.
  void add_own_heap(int rank, SegmentParts& parts, std::vector<int> ranks);
  void add_heap(int rank, SegmentParts& parts);
  // Registers a heap that another rank may create later. That rank writes `name` before it tells
  // others of any place in the heap, and this process attaches the heap when it is told of one.
  // Must not be used by a process whose address space is limited.
  void add_heap(int rank, const SegmentName* name);
  // leaving: true if the range is about to be freed, so that it is not described to others any
  // more; places described earlier are still found. false: it is not freed after all.
  void set_leaving(std::int64_t number, bool leaving);
  void remove(std::int64_t number);

  // Returns a description of these bytes for other processes, if all of `ranks` (sorted) map, or
  // may map, the range that contains them; otherwise one that says that they are not shared.
  // to_origin: how many bytes before `begin` the address lies from which others count offsets.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks,
                    std::int64_t to_origin = 0) const;
  // Returns the address in this process of a place that another rank has described; nullopt if no
  // range has its number, nullptr if it cannot be mapped.
  std::optional<std::byte*> find(const ShownBuffer& shown) const;
  // Records that all of `ranks` (sorted) have mapped a place of this process's heap, so that they
  // will find any other place in the same part.
  void all_have(const ShownBuffer& shown, std::span<const int> ranks);

 private:
  struct OwnHeap {
    std::int64_t number = 0;
    SegmentParts* parts = nullptr;  // this process's own heap; nullptr if it has none
    std::vector<int> ranks;         // sorted ranks that may map the heap
    // Sorted ranks that have mapped each part of the heap.
    std::array<std::vector<int>, SegmentParts::kMost> have;
  };
  struct Heap {
    std::int64_t number;
    SegmentParts* parts;      // the heap's mapped parts; nullptr if the heap is not attached
    const SegmentName* name;  // what is needed to attach the heap; nullptr if it cannot be attached
  };

  SegmentParts* attached(Heap& heap) const;
  void insert(const Heap& heap);
  Range* numbered(std::int64_t number);
  ShownBuffer shown_of_heap(const std::byte* begin, std::int64_t bytes, std::span<const int> ranks,
                            std::int64_t to_origin) const;

  mutable std::mutex mutex_;  // guards the members below
  std::vector<Range> ranges_;
  OwnHeap own_;
  mutable std::vector<Heap> heaps_;  // heaps of all processes, including this one, sorted by number
  mutable std::vector<std::unique_ptr<SegmentParts>> attached_;
};

}  // namespace weft
