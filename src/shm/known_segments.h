// KnownSegments: the segments that this process maps, by their tokens. Why: two processes that map
// the same segment have it at different addresses; so a place in it is told to another process as
// token and offset.
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
    std::int64_t offset = 0;  // in bytes
  };

  // All are thread-safe. As long as anybody holds it.
  void add(const std::shared_ptr<Segment>& segment);
  // Of an address; nullopt: in none of them.
  std::optional<Place> place_of(const std::byte* address);
  // nullptr: this process maps no such segment.
  std::shared_ptr<Segment> find(std::uint64_t token);

 private:
  std::mutex mutex_;  // guards the rest
  std::map<const std::byte*, std::weak_ptr<Segment>> by_address_;
  std::map<std::uint64_t, std::weak_ptr<Segment>> by_token_;
};

// Of this process.
KnownSegments& known_segments();

}  // namespace weft
