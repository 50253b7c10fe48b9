// NodeRoom: the memory of a communicator on one node. A page says who uses it; the node buffers
// follow, and then space for whatever else the communicator needs.
// NodeRooms: the rooms that no communicator of this process uses at the moment. Creating and
// mapping a segment takes two dozen system calls, and its first pages as many faults; the next
// communicator of the same ranks reuses them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "shm/node_buffers.h"
#include "shm/segment_room.h"

namespace weft {

class NodeRoom {
 public:
  // The ranks that share a room.
  struct Group {
    // The members' ranks in MPI_COMM_WORLD, by node rank; equal groups share one object.
    std::shared_ptr<const std::vector<int>> members;
    bool is_alone = true;  // their communicators have no ranks on other nodes
  };

  // Returns the bytes of the page and the node buffers.
  static std::int64_t bytes(int ranks, std::int64_t buffer_bytes);

  // segment: has bytes() and whatever else is needed, initially zero. node_rank: this rank's index
  // in the group.
  NodeRoom(std::shared_ptr<Segment> segment, Group group, int node_rank, std::int64_t buffer_bytes);

  // The token is equal on all ranks that share the room, and unique.
  std::uint64_t token() const { return rest_.segment->name().token; }
  bool is_of(const Group& group) const {
    return group.members == members_ && group.is_alone == is_alone_;
  }
  NodeBuffers& node_buffers() { return node_buffers_; }
  SegmentRoom::Space& rest() { return rest_; }

  // Notes that much of the node buffers was written: those pages are to be given back to the
  // system.
  void spread() { is_spread_.store(true, std::memory_order_relaxed); }
  // Notes that data may still arrive in the room, so that nobody may reuse it.
  void lose() { is_lost_.store(true, std::memory_order_relaxed); }

 private:
  friend class NodeRooms;

  // This is the layout of the first page, which is initially zero.
  struct Shared {
    // From the lowest bit on: the number of ranks that have left, kClear and kRetired; or, once all
    // have left, kIdle or kRetired alone. From bit kUse on: how often the room has been claimed.
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint64_t>
        turns_1;  // of the node buffers', as counted by the first to leave; and 1
    std::atomic<std::uint32_t> clears;  // how often the node buffers have become zero again
  };
  static constexpr std::uint64_t kUse = std::uint64_t{1} << 32, kRetired = 1u << 31,
                                 kIdle = 1u << 30, kClear = 1u << 29, kLeft = kClear - 1;

  Shared& shared() const { return *reinterpret_cast<Shared*>(rest_.segment->data()); }
  static std::uint64_t without_use(std::uint64_t state) { return state % kUse; }
  static std::uint16_t use_of(std::uint64_t state) {
    return static_cast<std::uint16_t>(state / kUse);
  }
  std::int64_t begin_of_rest() const {
    return bytes(node_buffers_.ranks(), node_buffers_.buffer_bytes());
  }
  std::int64_t given_away() const { return rest_.next - begin_of_rest(); }
  // Require that all ranks have left the room. From then on all ranks use it again, or none ever
  // will.
  bool claim() { return change_idle(kUse); }
  bool retire() { return change_idle(kRetired); }
  bool change_idle(std::uint64_t to);
  // Retires a room that this rank has left and that has not been claimed since.
  bool give_up();
  // Returns whether the room is retired and all ranks have left it.
  bool is_retired() const { return without_use(shared().state.load()) == kRetired; }
  // Are called when this rank begins or ceases to use the room.
  void enter();
  void leave();
  void settle();

  const std::shared_ptr<const std::vector<int>> members_;
  SegmentRoom::Space rest_;
  NodeBuffers node_buffers_;
  // The last use and clearing that this rank knows of. It misses none, so that a few bits suffice.
  std::uint16_t use_ = 0, clears_ = 0;
  const bool is_alone_;
  std::atomic<bool> is_spread_{false}, is_lost_{false};
};

// All functions are thread-safe. Rooms come back here when their last holder releases them.
class NodeRooms {
 public:
  // The number of rooms that are kept, and of those kept until other ranks have left them.
  static constexpr std::size_t kMost = 16, kMostInAll = 64;

  // Adds a new room.
  std::shared_ptr<NodeRoom> add(std::shared_ptr<Segment> segment, NodeRoom::Group group,
                                int node_rank, std::int64_t buffer_bytes);
  // Is called by the group's first rank, which sends the token to the others. Returns a room that
  // all of them have left and that each must take now; nullptr if there is none.
  std::shared_ptr<NodeRoom> take(const NodeRoom::Group& group);
  // Is called by the other ranks: returns the room of this token, which they have.
  std::shared_ptr<NodeRoom> take(const NodeRoom::Group& group, std::uint64_t token);

  std::size_t kept();

 private:
  using Kept = std::vector<std::unique_ptr<NodeRoom>>;

  std::shared_ptr<NodeRoom> lend(std::unique_ptr<NodeRoom> room);
  std::shared_ptr<NodeRoom> take(Kept::iterator one);
  void put(std::unique_ptr<NodeRoom> room);
  // Returns the rooms that are not kept any longer, to be unmapped without the lock.
  Kept surplus();

  std::mutex mutex_;  // guards the rest
  Kept kept_;         // the last one that came is last
};

// Returns the object of this process.
NodeRooms& node_rooms();

}  // namespace weft
