// SharedHeap: memory of this process that other processes of the node can map. Blocks come from one
// segment, which is mapped part by part as needed (SegmentParts) and has pages only where it is
// used. A part never moves: a process that has mapped it sees all later blocks at fixed offsets, so
// no mapping becomes outdated. A forked child gets a copy of the blocks, as of all memory; no other
// process sees its changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/result.h"
#include "shm/segment_parts.h"

namespace weft {

class SharedHeap {
 public:
  // Returns whether create() may succeed; it makes no system call.
  static bool may_be_made();
  // Creates the heap. Returns an error if there is no memory, or if the process has a limit on its
  // addresses. The heap lives as long as the process: blocks stay valid while the process exits.
  static Result<SharedHeap*> create();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // Sets the number of processes of this node that have such a heap and may fork at the same time.
  void set_sharers(int processes) { sharers_ = processes; }

  // Returns a block; nullptr if no space is left for it. alignment: a power of two. This function
  // and all below are thread-safe.
  void* allocate(std::int64_t bytes, std::int64_t alignment);
  // Returns a block whose bytes are all 0; nullptr if no space is left for it.
  void* allocate_zeroed(std::int64_t bytes);
  void release(void* block);
  std::int64_t bytes_of(void* block);  // returns its usable bytes, at least those requested
  // Tries to give a block another size. Returns true if the block now has space for `bytes`, and no
  // more than twice that; otherwise false.
  bool resize(void* block, std::int64_t bytes);

  // Returns whether an address is in the heap, in a block or not.
  bool contains(const void* address) const { return parts_.offset_of(address) >= 0; }
  SegmentParts& parts() { return parts_; }
  // Returns whether others can attach the heap; false in a forked child, which shares nothing.
  bool is_shared() const { return shared_; }
  const SegmentName& name() const { return parts_.segment().name(); }

  // The thread that forks calls these before and after the fork.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  struct Room {
    std::int64_t bytes = 0;
    bool clean = true;  // all bytes are 0: not used since its pages were returned to the system
  };
  using Rooms = std::map<std::int64_t, Room>;  // free ranges, indexed by offset

  SharedHeap(Segment segment, std::int64_t most_bytes);
  // Allocates a range and returns its offset; -1 if no space is left. *clean: whether its bytes are
  // all 0.
  std::int64_t take(std::int64_t bytes, std::int64_t alignment, bool* clean);
  std::int64_t take_free(std::int64_t wanted, std::int64_t alignment, bool* clean);
  bool add_part(std::int64_t bytes);  // maps a part of at least `bytes` bytes
  void give_back(std::int64_t offset, Room room);
  void give_pages_back();
  std::byte* address_of(std::int64_t offset) const {
    const int part = SegmentParts::part_with(offset);
    return parts_.at(part) + (offset - SegmentParts::begin_of(part));
  }
  bool has_blocks();
  std::int64_t bytes_with_pages() const;
  void copy_block(std::int64_t offset, std::int64_t bytes);

  SegmentParts parts_;
  const std::int64_t most_bytes_;  // longest block: the size of the machine's memory
  int sharers_ = 1;
  bool shared_ = true;
  std::mutex mutex_;                           // guards the members below
  Rooms free_;                                 // adjacent ranges of one part are merged
  std::map<std::int64_t, std::int64_t> used_;  // length in bytes of each block, indexed by offset
  std::int64_t used_bytes_ = 0;
  std::int64_t unclean_bytes_ = 0;             // bytes of free ranges that have pages
  std::map<std::int64_t, std::byte*> copies_;  // copies of blocks by offset, during a fork
};

}  // namespace weft
