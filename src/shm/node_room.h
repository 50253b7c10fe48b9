// NodeRoom: the memory that a communicator has on one node. A page says who uses it; the windows
// follow, and then room for what else the communicator needs.
// NodeRooms: those that no communicator of this process has just now. Why: to make a segment and to
// map it takes two dozen system calls, and its first pages as many faults. The next communicator
// of the same ranks finds all that done.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "shm/node_windows.h"
#include "shm/segment_room.h"

namespace weft {

class NodeRoom {
 public:
  // Who share it.
  struct Group {
    // By their places on the node, the ranks in MPI_COMM_WORLD; one object for all such groups.
    std::shared_ptr<const std::vector<int>> members;
    bool is_alone = true;  // their communicators have no ranks on other nodes
  };

  // Of page and windows.
  static std::int64_t bytes(int ranks, std::int64_t window_bytes);

  // segment: of bytes() and what else is needed, zero at first. place: of this rank in the group.
  NodeRoom(std::shared_ptr<Segment> segment, Group group, int place, std::int64_t window_bytes);

  // It is the same on all ranks that share it, and no other has it.
  std::uint64_t token() const { return rest_.segment->name().token; }
  bool is_of(const Group& group) const {
    return group.members == members_ && group.is_alone == is_alone_;
  }
  NodeWindows& windows() { return windows_; }
  SegmentRoom::Space& rest() { return rest_; }

  // Much of the windows has been written: those pages are to be given back to the system.
  void spread() { is_spread_.store(true, std::memory_order_relaxed); }
  // Something may still come into it: nobody is to use it again.
  void lose() { is_lost_.store(true, std::memory_order_relaxed); }

 private:
  friend class NodeRooms;

  // In the first page, which is zero at first.
  struct Shared {
    // From the lowest bit on: how many have left, and kClear and kRetired; or, once all have,
    // kIdle or kRetired alone. From kUse on: how often it has been claimed.
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint64_t> turns_1;  // of the windows', as counted by the first to leave; and 1
    std::atomic<std::uint32_t> clears;   // how often the windows have become zero again
  };
  static constexpr std::uint64_t kUse = std::uint64_t{1} << 32, kRetired = 1u << 31,
                                 kIdle = 1u << 30, kClear = 1u << 29, kLeft = kClear - 1;

  Shared& shared() const { return *reinterpret_cast<Shared*>(rest_.segment->data()); }
  static std::uint64_t without_use(std::uint64_t state) { return state % kUse; }
  static std::uint16_t use_of(std::uint64_t state) {
    return static_cast<std::uint16_t>(state / kUse);
  }
  std::int64_t begin_of_rest() const { return bytes(windows_.ranks(), windows_.window_bytes()); }
  std::int64_t given_away() const { return rest_.next - begin_of_rest(); }
  // Where all have left it: all use it from now on, or nobody will any more.
  bool claim() { return change_idle(kUse); }
  bool retire() { return change_idle(kRetired); }
  bool change_idle(std::uint64_t to);
  // Where this rank has left it, and it has not been claimed since: nobody will use it any more.
  bool give_up();
  // Nobody does, and all have left it.
  bool is_retired() const { return without_use(shared().state.load()) == kRetired; }
  // This rank begins to use it, or ceases to.
  void enter();
  void leave();
  void settle();

  const std::shared_ptr<const std::vector<int>> members_;
  SegmentRoom::Space rest_;
  NodeWindows windows_;
  // The last that this rank knows of, of which it misses none; so few bits of each tell.
  std::uint16_t use_ = 0, clears_ = 0;
  const bool is_alone_;
  std::atomic<bool> is_spread_{false}, is_lost_{false};
};

// All are thread-safe. What they give comes back here when it is let go.
class NodeRooms {
 public:
  // So many are kept, and so many for which others are still waited for.
  static constexpr std::size_t kMost = 16, kMostInAll = 64;

  // A new one.
  std::shared_ptr<NodeRoom> add(std::shared_ptr<Segment> segment, NodeRoom::Group group, int place,
                                std::int64_t window_bytes);
  // For the first of the group, which tells the others its token: one that all of them are done
  // with, and that each of them has to take now. nullptr: there is none.
  std::shared_ptr<NodeRoom> take(const NodeRoom::Group& group);
  // For the others: the one of this token, which they have.
  std::shared_ptr<NodeRoom> take(const NodeRoom::Group& group, std::uint64_t token);

  std::size_t kept();

 private:
  using Kept = std::vector<std::unique_ptr<NodeRoom>>;

  std::shared_ptr<NodeRoom> lend(std::unique_ptr<NodeRoom> room);
  std::shared_ptr<NodeRoom> take(Kept::iterator one);
  void put(std::unique_ptr<NodeRoom> room);
  // What is not to be kept any longer, to be unmapped without the lock.
  Kept surplus();

  std::mutex mutex_;  // guards the rest
  Kept kept_;         // the last one that came is last
};

// Of this process.
NodeRooms& node_rooms();

}  // namespace weft
