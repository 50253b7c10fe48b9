// Events: a queue of events in virtual time. Events at the same time occur in the order in which
// they were planned, so runs are repeatable.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace weft::sim {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct Event {
  enum class Kind : std::uint8_t { core, copy, wake };

  double at_us = 0;
  std::uint64_t order = 0;
  Kind kind = Kind::core;
  std::int32_t index = 0;  // index of what the event is about: a core, a NUMA node or a thread
  // The event is ignored if its core, NUMA node or thread has a newer version, since a later event
  // was planned for it.
  std::uint32_t version = 0;
};

class Events {
 public:
  void plan(double at_us, Event::Kind kind, int index, std::uint32_t version) {
    queue_.push({at_us, planned_++, kind, index, version});
  }
  bool empty() const { return queue_.empty(); }
  Event next() {
    const Event event = queue_.top();
    queue_.pop();
    ++happened_;
    return event;
  }
  std::uint64_t happened() const { return happened_; }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at_us != b.at_us ? a.at_us > b.at_us : a.order > b.order;
    }
  };
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::uint64_t planned_ = 0, happened_ = 0;
};

}  // namespace weft::sim
