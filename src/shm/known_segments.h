// KnownSegments: the shared-memory segments that this process maps. Processes map a segment at
// different addresses, so an address in it is described to others by the segment's number (its
// token) and an offset.
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
    std::int64_t offset = 0;  // bytes from the beginning of the segment
  };

  // Registers a segment without keeping it alive. All functions of this class are thread-safe.
  void add(const std::shared_ptr<Segment>& segment);
  // Returns the token and the offset of an address; nullopt if it is in no registered segment.
  std::optional<Place> place_of(const std::byte* address);
  // Returns the segment with this token; nullptr if this process maps none.
  std::shared_ptr<Segment> find(std::uint64_t token);

 private:
  std::mutex mutex_;  // guards the members below
  std::map<const std::byte*, std::weak_ptr<Segment>> by_address_;
  std::map<std::uint64_t, std::weak_ptr<Segment>> by_token_;
};

// Returns the list of segments that this process maps.
KnownSegments& known_segments();

}  // namespace weft
