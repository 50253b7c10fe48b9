// SegmentRoom: a segment that is given away piece by piece, from its beginning to its end.
// Why: making a segment and mapping it on all ranks takes a dozen system calls and an agreement; a
// piece takes none. No piece is given twice, so that all are zero at first, as fresh memory is.
#pragma once

#include <memory>
#include <utility>

#include "shm/known_segments.h"
#include "shm/segment.h"

namespace weft {

class SegmentRoom {
 public:
  SegmentRoom() = default;  // there is none
  explicit SegmentRoom(Segment segment)
      : segment_(std::make_shared<Segment>(std::move(segment))), left_(segment_->bytes()) {
    known_segments().add(segment_);
  }

  void keep_from_library() { segment_->keep_from_library(); }
  bool fits(std::int64_t bytes) const { return bytes <= left_; }
  // Of whole pages, which fit. The segment lives as long as the room and all its pieces.
  std::shared_ptr<std::byte> take(std::int64_t bytes) {
    std::byte* const piece = segment_->data() + (segment_->bytes() - left_);
    left_ -= bytes;
    return {segment_, piece};
  }

 private:
  std::shared_ptr<Segment> segment_;
  std::int64_t left_ = 0;
};

}  // namespace weft
