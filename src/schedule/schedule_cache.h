// ScheduleCache: the schedules that a communicator has used last, by their shapes and algorithms.
// Why bounded by bytes: a schedule has a step for each message, and so with many ranks up to
// hundreds of bytes for each of them, on every communicator. There is a bound for each, and one for
// all of a process together.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>

#include "schedule/schedule.h"

namespace weft {

// Of memory that the schedule, its shape included, takes.
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

  // What is kept, else what `build` makes, which is kept in place of those that were used longest
  // ago. Where all caches together have their share, that is the last one only; one of more than
  // kMost_bytes is not kept then. Else the last one is kept however long it is, since a program
  // repeats its calls. `algorithm` tells apart what builds different schedules of one shape.
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

  std::list<Entry> entries_;  // the last used first
  std::size_t bytes_ = 0;
  static inline std::atomic<std::size_t> all_bytes_{0};
};

}  // namespace weft
