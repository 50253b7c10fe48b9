// KnownSegments: the segments that this process maps, by token. Processes map a segment at
// different addresses, so a place in it is described to others by token and offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "shm/segment.h"

namespace weft {

class KnownSegments {
 public:
  struct Place {
    std::uint64_t token = 0;
    std::int64_t offset = 0;  // offset in the segment, in bytes
  };

  // Registers the segment without keeping it alive. All functions of this class are thread-safe.
  void add(const std::shared_ptr<Segment>& segment);
  // Returns the place of an address; nullopt if it is in no registered segment.
  std::optional<Place> place_of(const std::byte* address);
  // Returns the segment of this token; nullptr if this process maps none.
  std::shared_ptr<Segment> find(std::uint64_t token);

 private:
  std::mutex mutex_;  // guards the members below
  std::map<const std::byte*, std::weak_ptr<Segment>> by_address_;
  std::map<std::uint64_t, std::weak_ptr<Segment>> by_token_;
};

// Returns the list of segments of this process.
KnownSegments& known_segments();

}  // namespace weft
