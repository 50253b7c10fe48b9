// SegmentAllocator: hands out a shared-memory segment piece by piece, from beginning to end.
// Creating a segment and mapping it on all ranks takes a dozen system calls and an agreement;
// handing out a piece takes none. No piece is handed out twice, so all are initially zero, like
// fresh memory.
#pragma once

#include <memory>
#include <utility>

#include "shm/segment.h"

namespace weft {

class SegmentAllocator {
 public:
  // Space: a segment, and the offset in bytes from which on it is still unused.
  struct Space {
    std::shared_ptr<Segment> segment;
    std::int64_t next = 0;
  };

  // Creates an allocator without a segment, so that take() always fails.
  SegmentAllocator() = default;
  explicit SegmentAllocator(std::shared_ptr<Space> space) : space_(std::move(space)) {}
  // Creates an allocator that hands out the whole segment.
  explicit SegmentAllocator(std::shared_ptr<Segment> segment)
      : space_(std::make_shared<Space>(std::move(segment))) {}

  bool fits(std::int64_t bytes) const { return bytes <= left(); }
  // Hands out `bytes` bytes, which must be whole pages and fit into the rest of the segment. The
  // segment lives as long as this object and all pieces.
  std::shared_ptr<std::byte> take(std::int64_t bytes) {
    std::byte* const piece = space_->segment->data() + space_->next;
    space_->next += bytes;
    return {space_, piece};
  }

 private:
  std::int64_t left() const { return space_ ? space_->segment->bytes() - space_->next : 0; }

  std::shared_ptr<Space> space_;
};

}  // namespace weft
