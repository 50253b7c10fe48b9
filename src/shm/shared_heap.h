// SharedHeap: memory of this process that other processes of the node can map: blocks handed out of
// one segment, mapped part by part as blocks need it (SegmentParts), with pages only where it is
// used. Why a part never moves: whoever has mapped it once sees every block there will ever be,
// under one offset, so that no mapping can be out of date. A forked child gets a copy of the
// blocks, as of all memory; what it does to them, nobody sees.
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
  // Whether there is any use in trying; without a system call.
  static bool may_be_made();
  // An error where memory is not to be had, or the process has a limit on its addresses. For the
  // life of the process: what is handed out stays valid while it exits.
  static Result<SharedHeap*> create();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // How many processes of this node have such a heap, and may fork at the same time.
  void set_sharers(int processes) { sharers_ = processes; }

  // nullptr: no room. alignment: a power of two. Thread-safe, as all below.
  void* allocate(std::int64_t bytes, std::int64_t alignment);
  // All bytes 0.
  void* allocate_zeroed(std::int64_t bytes);
  void release(void* block);
  std::int64_t bytes_of(void* block);  // of room, at least what was asked for
  // True: the block has room for `bytes` now, and no more than twice that.
  bool resize(void* block, std::int64_t bytes);

  // Whether an address lies in it, in a block or not.
  bool contains(const void* address) const { return parts_.offset_of(address) >= 0; }
  SegmentParts& parts() { return parts_; }
  // For those who want to attach; false in a forked child, which shares nothing.
  bool is_shared() const { return shared_; }
  const SegmentName& name() const { return parts_.segment().name(); }

  // Around a fork, by the thread that forks.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  struct Room {
    std::int64_t bytes = 0;
    bool clean = true;  // never used since its pages were given back: all bytes 0
  };
  using Rooms = std::map<std::int64_t, Room>;  // by offset

  SharedHeap(Segment segment, std::int64_t most_bytes);
  std::int64_t take(std::int64_t bytes, std::int64_t alignment, bool* clean);  // -1: no room
  std::int64_t take_free(std::int64_t wanted, std::int64_t alignment, bool* clean);
  bool add_part(std::int64_t bytes);  // of at least so many
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
  const std::int64_t most_bytes_;  // in blocks: the machine's memory
  int sharers_ = 1;
  bool shared_ = true;
  std::mutex mutex_;                           // guards the rest
  Rooms free_;                                 // no two of one part touch
  std::map<std::int64_t, std::int64_t> used_;  // bytes by offset
  std::int64_t used_bytes_ = 0;
  std::int64_t unclean_bytes_ = 0;             // free, but with pages
  std::map<std::int64_t, std::byte*> copies_;  // of blocks by offset, while a fork is under way
};

}  // namespace weft
