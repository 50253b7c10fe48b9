// Trace: what each thread of this rank does over time. It keeps events in a ring buffer per thread,
// and writes them as Chrome/Perfetto JSON events (https://ui.perfetto.dev opens the file).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace weft {

class Trace {
 public:
  // Track: the events of one thread. Only that thread writes them. Others read them after the
  // thread has ended or paused.
  class Track {
   public:
    Track(std::string name, bool gaps_are_computing);
    void span(const char* name, std::int64_t begin_ns, std::int64_t end_ns);
    // Begins activity `name` at time `at_ns`. If it is the current one already, that activity
    // continues.
    void change(const char* name, std::int64_t at_ns);

   private:
    friend class Trace;
    struct Event {
      const char* name;  // name of the activity, in static storage
      std::int64_t begin_ns;
      std::int64_t end_ns;
    };
    static constexpr std::size_t kCapacity = 1 << 16;

    std::string name_;
    bool gaps_are_computing_;
    std::vector<Event> ring_;
    std::uint64_t recorded_ = 0;
    const char* current_ = nullptr;
    std::int64_t current_since_ns_ = 0;
  };

  // Adds a track for a thread. It lives as long as the trace.
  Track* add_track(std::string name, bool gaps_are_computing);

  // Returns the rank's events as comma-separated JSON objects, with times in microseconds.
  // `offset_ns` is added to each time, so that ranks with different clocks can be compared.
  std::string events_json(int rank, const std::string& host, std::int64_t offset_ns,
                          std::int64_t end_ns) const;

 private:
  mutable std::mutex mutex_;  // guards tracks_
  std::vector<std::unique_ptr<Track>> tracks_;
};

}  // namespace weft
