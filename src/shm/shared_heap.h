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
  // Creates the heap. Returns an error if there is no memory, or if the process's address space is
  // limited. The heap is never destroyed: blocks stay valid while the process exits.
  static Result<SharedHeap*> create();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // Sets how many processes of this node have such a heap. They may all fork at the same time, so
  // they share the memory for copies.
  void set_sharers(int processes) { sharers_ = processes; }

  // Returns a new block; nullptr if there is no space for it. alignment: a power of two. This
  // function and all below are thread-safe.
  void* allocate(std::int64_t bytes, std::int64_t alignment);
  // Returns a new block whose bytes are all 0; nullptr if there is no space for it.
  void* allocate_zeroed(std::int64_t bytes);
  void release(void* block);
  // Number of bytes that may be used in the block, at least as many as were requested.
  std::int64_t bytes_of(void* block);
  // Returns true if the block has space for `bytes` and no more than twice that; it then keeps its
  // place. Otherwise returns false, and another block must be allocated.
  bool resize(void* block, std::int64_t bytes);

  // Returns whether an address is in the heap, whether or not a block is there.
  bool contains(const void* address) const { return parts_.offset_of(address) >= 0; }
  SegmentParts& parts() { return parts_; }
  // Returns whether other processes can attach the heap. This is false in a forked child.
  bool is_shared() const { return shared_; }
  const SegmentName& name() const { return parts_.segment().name(); }

  // The thread that forks must call before_fork() before it, and one of the other two after it.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  struct Room {
    std::int64_t bytes = 0;
    // True if all bytes are 0, that is, unused since the pages were returned to the system.
    bool clean = true;
  };
  using Rooms = std::map<std::int64_t, Room>;  // free ranges, indexed by offset

  SharedHeap(Segment segment, std::int64_t most_bytes);
  // Allocates a range, and returns its offset; -1 if there is no space. *clean: gets whether all
  // its bytes are 0.
  std::int64_t take(std::int64_t bytes, std::int64_t alignment, bool* clean);
  std::int64_t take_free(std::int64_t wanted, std::int64_t alignment, bool* clean);
  // Maps one more part of at least `bytes` bytes; returns whether that succeeded.
  bool add_part(std::int64_t bytes);
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
  // Bytes of the longest possible block: the size of the machine's memory.
  const std::int64_t most_bytes_;
  int sharers_ = 1;
  bool shared_ = true;
  std::mutex mutex_;  // guards the members below
  // Free ranges; adjacent ones of the same part are merged.
  Rooms free_;
  std::map<std::int64_t, std::int64_t> used_;  // length in bytes of each block, indexed by offset
  std::int64_t used_bytes_ = 0;
  std::int64_t unclean_bytes_ = 0;  // bytes of free ranges that still have pages
  // Private copies of blocks, indexed by offset; empty except during a fork.
  std::map<std::int64_t, std::byte*> copies_;
};

}  // namespace weft
