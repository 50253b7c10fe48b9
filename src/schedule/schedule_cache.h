// ScheduleCache: the schedules that a communicator has used last, by their shapes and algorithms.
// Why bounded by bytes: a schedule has a step for each message, and so with many ranks up to
// hundreds of bytes for each of them, on every communicator.
#pragma once

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

  // What is kept, else what `build` makes, which is kept in place of those that were used longest
  // ago; the last one however long it is, since a program repeats its calls. `algorithm` tells
  // apart what builds different schedules of one shape.
  template <class Build>
  std::shared_ptr<const Schedule> find_or(const Shape& shape, const void* algorithm, Build build) {
    if (auto found = find(shape, algorithm)) return found;
    return keep(shape, algorithm, std::make_shared<const Schedule>(build()));
  }

  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

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

  std::list<Entry> entries_;  // the last used first
  std::size_t bytes_ = 0;
};

}  // namespace weft
