// NodeSharedMemory: a communicator's memory on one node. Its first page records who uses it; the
// node buffers follow, and space for anything else that the communicator needs. NodeSharedMemories:
// the NodeSharedMemory objects of this process that no communicator uses at present. Creating and
// mapping a segment takes two dozen system calls, and its first pages as many faults; the next
// communicator of the same ranks saves these by reuse.
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
  // The ranks whose communicators may use the same memory, one after the other.
  struct Group {
    // The members' ranks in MPI_COMM_WORLD, by node rank; equal groups share one object.
    std::shared_ptr<const std::vector<int>> members;
    bool is_alone = true;  // true if their communicators have no ranks on other nodes
  };

  // Returns how many bytes the first page and the node buffers take together.
  static std::int64_t bytes(int ranks, std::int64_t buffer_bytes);

  // segment: must be zero at first, and longer than bytes() by the space for anything else.
  // node_rank: this rank's index in the group.
  NodeSharedMemory(std::shared_ptr<Segment> segment, Group group, int node_rank,
                   std::int64_t buffer_bytes);

  // Returns a unique number that is equal on all ranks that share the memory.
  std::uint64_t token() const { return rest_.segment->name().token; }
  bool is_of(const Group& group) const {
    return group.members == members_ && group.is_alone == is_alone_;
  }
  NodeBuffers& node_buffers() { return node_buffers_; }
  SegmentAllocator::Space& rest() { return rest_; }

  // Says that much of the node buffers was written, so that their pages should be returned to the
  // system when the communicator ends.
  void spread() { is_spread_.store(true, std::memory_order_relaxed); }
  // Says that data may still arrive in this memory, so that it must never be reused.
  void lose() { is_lost_.store(true, std::memory_order_relaxed); }

 private:
  friend class NodeSharedMemories;

  // The layout of the first page, which is initially zero.
  struct Shared {
    // From the lowest bit on: the number of ranks that have left, kClear and kRetired; or, once all
    // have left, kIdle or kRetired alone. From bit kUse on: how many communicators have reused the
    // memory.
    std::atomic<std::uint64_t> state;
    // Number of uses of the node buffers plus 1, as counted by the first rank to leave.
    std::atomic<std::uint64_t> turns_1;
    std::atomic<std::uint32_t> clears;  // number of times that the node buffers were zeroed
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
  // Claim the memory for another communicator, or retire it for good. Both require that all ranks
  // have left it, and return false if that is not so; otherwise true, and from then on all ranks
  // use it again, or none ever will.
  bool claim() { return change_idle(kUse); }
  bool retire() { return change_idle(kRetired); }
  bool change_idle(std::uint64_t to);
  // Retires memory that this rank has left. Returns false if another communicator has claimed it
  // since, otherwise true.
  bool give_up();
  // Returns whether no communicator will use the memory again, and all ranks have left it.
  bool is_retired() const { return without_use(shared().state.load()) == kRetired; }
  // These functions must be called when this rank starts or stops using the memory.
  void enter();
  void leave();
  void settle();

  const std::shared_ptr<const std::vector<int>> members_;
  SegmentAllocator::Space rest_;
  NodeBuffers node_buffers_;
  // The last reuse and zeroing that this rank knows of. It misses none, so a few bits suffice.
  std::uint16_t use_ = 0, clears_ = 0;
  const bool is_alone_;
  std::atomic<bool> is_spread_{false}, is_lost_{false};
};

// Keeps the NodeSharedMemory objects that no communicator uses. All functions are thread-safe. An
// object returns here when its last holder releases it.
class NodeSharedMemories {
 public:
  // The number of objects that are kept, and the larger number that may be kept until other ranks
  // have left them.
  static constexpr std::size_t kMost = 16, kMostInAll = 64;

  // Adds a new object, for a communicator that uses it at once.
  std::shared_ptr<NodeSharedMemory> add(std::shared_ptr<Segment> segment,
                                        NodeSharedMemory::Group group, int node_rank,
                                        std::int64_t buffer_bytes);
  // Returns memory that all ranks of the group have left and that each must take now; nullptr if
  // there is none. Must be called by the group's first rank, which sends the token to the others.
  std::shared_ptr<NodeSharedMemory> take(const NodeSharedMemory::Group& group);
  // Returns the memory of this token, which all ranks of the group keep; for the ranks to which the
  // first one has sent the token.
  std::shared_ptr<NodeSharedMemory> take(const NodeSharedMemory::Group& group, std::uint64_t token);

  std::size_t kept();

 private:
  using Kept = std::vector<std::unique_ptr<NodeSharedMemory>>;

  std::shared_ptr<NodeSharedMemory> lend(std::unique_ptr<NodeSharedMemory> room);
  std::shared_ptr<NodeSharedMemory> take(Kept::iterator one);
  void put(std::unique_ptr<NodeSharedMemory> room);
  // Removes the objects that are not kept any longer and returns them, to be unmapped when the lock
  // is free.
  Kept surplus();

  std::mutex mutex_;  // guards the members below
  Kept kept_;         // the object that returned last is last
};

// Returns the NodeSharedMemories of this process.
NodeSharedMemories& node_shared_memories();

}  // namespace weft
