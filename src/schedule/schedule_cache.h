// ScheduleCache: the schedules that a communicator used last, by the call's arguments and
// algorithm. Its memory is limited, since a schedule has a step for each message: with many ranks
// that takes hundreds of bytes per rank, on every communicator. There is a limit for each cache,
// and one for all caches of a process together.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>

#include "schedule/schedule.h"

namespace weft {

// Returns how many bytes of memory the schedule uses, including the arguments of its call.
std::size_t bytes_of(const Schedule& schedule);

class ScheduleCache {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kMost_bytes = std::size_t{1} << 20;
  static constexpr std::size_t kMostOfAll_bytes = std::size_t{16} << 20;

  ScheduleCache() = default;
  ~ScheduleCache() { all_bytes_.fetch_sub(bytes_, std::memory_order_relaxed); }
  ScheduleCache(const ScheduleCache&) = delete;
  ScheduleCache& operator=(const ScheduleCache&) = delete;

  // Returns the cached schedule for the shape and `algorithm`, or else the result of build(), which
  // it puts into the cache in place of the least recently used ones. The last schedule stays in the
  // cache even if it is longer than the limit, since programs repeat their calls. Once all caches
  // of the process together have reached their limit, each keeps only its last schedule, and none
  // longer than kMost_bytes.
  template <class Build>
  std::shared_ptr<const Schedule> find_or(const Shape& shape, const void* algorithm, Build build) {
    if (auto found = find(shape, algorithm)) return found;
    return keep(shape, algorithm, std::make_shared<const Schedule>(build()));
  }

  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }
  static std::size_t bytes_of_all() { return all_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    Shape shape;
    const void* algorithm;
    std::shared_ptr<const Schedule> schedule;
    std::size_t bytes;
  };

  std::shared_ptr<const Schedule> find(const Shape& shape, const void* algorithm);
  std::shared_ptr<const Schedule> keep(const Shape& shape, const void* algorithm,
                                       std::shared_ptr<const Schedule> made);

  void drop_last();

  std::list<Entry> entries_;  // cached schedules, the most recently used first
  std::size_t bytes_ = 0;
  static inline std::atomic<std::size_t> all_bytes_{0};
};

}  // namespace weft
