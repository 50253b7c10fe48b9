// NodeSharedMemory: the shared memory of a communicator's ranks on one node. Its first page records
// who uses it; the node buffers follow, and space for anything else that the communicator needs.
// NodeSharedMemories: the NodeSharedMemory objects of this process that no communicator uses at
// present. Creating and mapping a segment takes two dozen system calls, and its first pages as many
// page faults; the next communicator of the same ranks saves these by reuse.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "shm/node_buffers.h"
#include "shm/segment_allocator.h"

namespace weft {

class NodeSharedMemory {
 public:
  // Group: the ranks of one node whose communicators may use the same memory, one after the other.
  struct Group {
    // Ranks in MPI_COMM_WORLD of the members, indexed by node rank. Equal groups share one object.
    std::shared_ptr<const std::vector<int>> members;
    bool is_alone = true;  // true if the communicators of this group have no ranks on other nodes
  };

  // Returns how many bytes the first page and the node buffers take together.
  static std::int64_t bytes(int ranks, std::int64_t buffer_bytes);

  // segment: must be zero at first. It must be longer than bytes(); the bytes beyond that are for
  // anything else. node_rank: this rank's index in the group.
  NodeSharedMemory(std::shared_ptr<Segment> segment, Group group, int node_rank,
                   std::int64_t buffer_bytes);

  // Returns a number that is equal on all ranks that share this memory, and differs for other
  // memory.
  std::uint64_t token() const { return rest_.segment->name().token; }
  bool is_of(const Group& group) const {
    return group.members == members_ && group.is_alone == is_alone_;
  }
  NodeBuffers& node_buffers() { return node_buffers_; }
  SegmentAllocator::Space& rest() { return rest_; }

  // Notes that much of the node buffers was written, so that their pages should be returned to the
  // system when the communicator is freed.
  void spread() { is_spread_.store(true, std::memory_order_relaxed); }
  // Notes that data may still arrive in this memory, so that it must never be reused.
  void lose() { is_lost_.store(true, std::memory_order_relaxed); }

 private:
  friend class NodeSharedMemories;

  // Shared: the content of the first page, which is initially zero.
  struct Shared {
    // From bit kUse on: how many communicators have reused the memory. The lower bits: the number
    // of ranks that have left, kClear and kRetired. Once all ranks have left, the lower bits are
    // kIdle or kRetired alone.
    std::atomic<std::uint64_t> state;
    // How often the ranks have used node buffers, plus 1. The first rank to leave writes its own
    // number, and the others compare theirs.
    std::atomic<std::uint64_t> turns_1;
    std::atomic<std::uint32_t> clears;  // how often the node buffers were zeroed
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
  // claim() reserves the memory for another communicator, which all ranks then use. retire()
  // decides that no rank will ever use it again. Both return false, and do nothing, unless all
  // ranks have left the memory.
  bool claim() { return change_idle(kUse); }
  bool retire() { return change_idle(kRetired); }
  bool change_idle(std::uint64_t to);
  // Retires memory that this rank has left, even if others have not. Returns false if another
  // communicator has claimed it since; otherwise true.
  bool give_up();
  // Returns whether all ranks have left the memory and no communicator will use it again.
  bool is_retired() const { return without_use(shared().state.load()) == kRetired; }
  // enter() must be called when this rank starts to use the memory, leave() when it stops.
  void enter();
  void leave();
  void settle();

  const std::shared_ptr<const std::vector<int>> members_;
  SegmentAllocator::Space rest_;
  NodeBuffers node_buffers_;
  // How often the memory was reused, and its node buffers zeroed, when this rank last looked. The
  // rank misses no change, so a few bits suffice.
  std::uint16_t use_ = 0, clears_ = 0;
  const bool is_alone_;
  std::atomic<bool> is_spread_{false}, is_lost_{false};
};

// NodeSharedMemories: keeps the NodeSharedMemory objects that no communicator uses. An object
// returns here when its last holder releases it. All functions are thread-safe.
class NodeSharedMemories {
 public:
  // kMost: the number of objects that are kept. kMostInAll: the number including objects that other
  // ranks have not left yet.
  static constexpr std::size_t kMost = 16, kMostInAll = 64;

  // Adds a new object. It is returned for a communicator that uses it at once.
  std::shared_ptr<NodeSharedMemory> add(std::shared_ptr<Segment> segment,
                                        NodeSharedMemory::Group group, int node_rank,
                                        std::int64_t buffer_bytes);
  // Returns memory that all ranks of the group have left; nullptr if there is none. The group's
  // first rank must call it and send the token to the others, which must then take the same memory.
  std::shared_ptr<NodeSharedMemory> take(const NodeSharedMemory::Group& group);
  // Returns the memory with this token, which the group's first rank has sent. All ranks of the
  // group keep it.
  std::shared_ptr<NodeSharedMemory> take(const NodeSharedMemory::Group& group, std::uint64_t token);

  std::size_t kept();

 private:
  using Kept = std::vector<std::unique_ptr<NodeSharedMemory>>;

  std::shared_ptr<NodeSharedMemory> lend(std::unique_ptr<NodeSharedMemory> room);
  std::shared_ptr<NodeSharedMemory> take(Kept::iterator one);
  void put(std::unique_ptr<NodeSharedMemory> room);
  // Removes the objects that are no longer kept, and returns them. They must be unmapped after the
  // lock is released.
  Kept surplus();

  std::mutex mutex_;  // guards the members below
  Kept kept_;         // kept objects, in the order in which they returned
};

// Returns the only NodeSharedMemories object of this process.
NodeSharedMemories& node_shared_memories();

}  // namespace weft
