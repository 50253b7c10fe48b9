// SimNode: the memory that the ranks of a simulated node share, and each rank's NodeBuffers in it.
// It is real memory, so that signals and waits run the code that MPI programs use.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>

#include "schedule/schedule.h"
#include "shm/node_buffers.h"

namespace weft {

class SimNode {
 public:
  // Returns the NodeBufferUse of the next rank of the node, for an operation with this schedule.
  // Must be called once for each rank of the node, in order.
  NodeBufferUse turn(const Schedule& schedule) {
    const std::int64_t bytes = schedule.node_bytes;
    if (bytes == 0) return {};
    const int ranks = ranks_here(schedule.shape);
    if (!memory_) memory_.reset(zeroed(NodeBuffers::bytes(ranks, bytes)));
    node_buffers_.emplace_back(memory_.get(), node_rank_of(schedule.shape, schedule.shape.rank),
                               ranks, bytes);
    return node_buffers_.back().next(Ends::in_order, schedule);
  }

 private:
  // Returns zeroed memory of `bytes` bytes. Pages that are never touched take no memory.
  static std::byte* zeroed(std::int64_t bytes) {
    return static_cast<std::byte*>(std::calloc(static_cast<std::size_t>(bytes), 1));
  }
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::deque<NodeBuffers> node_buffers_;
};

}  // namespace weft
