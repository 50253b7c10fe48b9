// SegmentAllocator: a segment that is handed out piece by piece, from beginning to end. Creating a
// segment and mapping it on all ranks takes a dozen system calls and an agreement; handing out a
// piece takes none. No piece is handed out twice, so all are initially zero, like fresh memory.
#pragma once

#include <memory>
#include <utility>

#include "shm/segment.h"

namespace weft {

class SegmentAllocator {
 public:
  // A segment, and the offset in bytes at which its remaining space begins.
  struct Space {
    std::shared_ptr<Segment> segment;
    std::int64_t next = 0;
  };

  SegmentAllocator() = default;  // has no segment, so nothing fits
  explicit SegmentAllocator(std::shared_ptr<Space> space) : space_(std::move(space)) {}
  // Makes the whole segment available for pieces.
  explicit SegmentAllocator(std::shared_ptr<Segment> segment)
      : space_(std::make_shared<Space>(std::move(segment))) {}

  bool fits(std::int64_t bytes) const { return bytes <= left(); }
  // Hands out a piece of `bytes` bytes, which must be whole pages and fit. The segment lives as
  // long as this object and all its pieces.
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
