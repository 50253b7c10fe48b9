#include "schedule/schedule_cache.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

template <class Element>
std::size_t bytes_of(const std::vector<Element>& elements) {
  return elements.capacity() * sizeof(Element);
}

std::size_t bytes_of(const Shape& shape) {
  return sizeof shape + bytes_of(shape.send_blocks) + bytes_of(shape.recv_blocks) +
         bytes_of(shape.types) + bytes_of(shape.destinations) + bytes_of(shape.sources);
}

}  // namespace

std::size_t bytes_of(const Schedule& schedule) {
  return sizeof schedule - sizeof schedule.shape + bytes_of(schedule.shape) +
         bytes_of(schedule.steps) + bytes_of(schedule.round_ends) + bytes_of(schedule.program);
}

std::shared_ptr<const Schedule> ScheduleCache::find(const Shape& shape, const void* algorithm) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.algorithm == algorithm && entry.shape == shape;
  });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->schedule;
}

std::shared_ptr<const Schedule> ScheduleCache::keep(const Shape& shape, const void* algorithm,
                                                    std::shared_ptr<const Schedule> made) {
  const std::size_t bytes = bytes_of(*made) + bytes_of(shape);
  entries_.push_front({shape, algorithm, made, bytes});
  bytes_ += bytes;
  all_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const auto too_many = [this] {
    return entries_.size() > kMost || bytes_ > kMost_bytes || bytes_of_all() > kMostOfAll_bytes;
  };
  while (entries_.size() > 1 && too_many()) drop_last();
  if (bytes > kMost_bytes && bytes_of_all() > std::max(kMostOfAll_bytes, bytes)) drop_last();
  return made;
}

void ScheduleCache::drop_last() {
  bytes_ -= entries_.back().bytes;
  all_bytes_.fetch_sub(entries_.back().bytes, std::memory_order_relaxed);
  entries_.pop_back();
}

}  // namespace weft
