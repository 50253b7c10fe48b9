// SegmentRoom: a segment that is given away piece by piece, from its beginning to its end.
// Why: making a segment and mapping it on all ranks takes a dozen system calls and an agreement; a
// piece takes none. No piece is given twice, so that all are zero at first, as fresh memory is.
#pragma once

#include <memory>
#include <utility>

#include "shm/segment.h"

namespace weft {

class SegmentRoom {
 public:
  // A segment, and where what is left of it begins, in bytes.
  struct Space {
    std::shared_ptr<Segment> segment;
    std::int64_t next = 0;
  };

  SegmentRoom() = default;  // there is none
  explicit SegmentRoom(std::shared_ptr<Space> space) : space_(std::move(space)) {}
  // All of it.
  explicit SegmentRoom(std::shared_ptr<Segment> segment)
      : space_(std::make_shared<Space>(std::move(segment))) {}

  bool fits(std::int64_t bytes) const { return bytes <= left(); }
  // Of whole pages, which fit. The space lives as long as the room and all its pieces.
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
