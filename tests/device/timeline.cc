#include "timeline.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace standin {
namespace {

thread_local std::string track = "thread";

struct Event {
  std::string track, name;
  std::int64_t begin_ns, end_ns;
};

const char* rank_of_process() {
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK"}) {
    if (const char* const given = std::getenv(name)) return given;
  }
  return "0";
}

class Timeline {
 public:
  // Returns the timeline of this process; nullptr if none is asked for.
  static Timeline* own() {
    // Never destroyed, since threads may run longer than main().
    static Timeline* const made = [] {
      const char* const given = std::getenv("WEFT_STANDIN_TIMELINE");
      if (!given) return static_cast<Timeline*>(nullptr);
      std::atexit([] { own()->write(); });
      return new Timeline(std::string(given) + "." + rank_of_process());
    }();
    return made;
  }

  void add(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }

 private:
  explicit Timeline(std::string path) : path_(std::move(path)) {}

  void write() {
    const std::lock_guard lock(mutex_);
    std::FILE* const file = std::fopen(path_.c_str(), "w");
    if (!file) return;
    std::vector<std::string> tracks;
    const char* separator = "[\n";
    for (const Event& one : events_) {
      auto found = std::find(tracks.begin(), tracks.end(), one.track);
      const auto number = found - tracks.begin();
      if (found == tracks.end()) {
        tracks.push_back(one.track);
        std::fprintf(file,
                     "%s{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%s,\"tid\":%td,"
                     "\"args\":{\"name\":\"%s\"}}",
                     separator, rank_of_process(), kFirst + number, one.track.c_str());
        separator = ",\n";
      }
      std::fprintf(file,
                   ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%s,\"tid\":%td,\"ts\":%.3f,"
                   "\"dur\":%.3f}",
                   one.name.c_str(), rank_of_process(), kFirst + number,
                   static_cast<double>(one.begin_ns) / 1e3,
                   static_cast<double>(one.end_ns - one.begin_ns) / 1e3);
    }
    std::fprintf(file, "%s]\n", events_.empty() ? "[" : "\n");
    std::fclose(file);
  }

  // Number of the first track, so that it is none of Weft's own.
  static constexpr std::ptrdiff_t kFirst = 1000;

  const std::string path_;
  std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace

Task named(const std::string& name, Task task) {
  Timeline* const timeline = Timeline::own();
  if (!timeline) return task;
  return [timeline, name, task = std::move(task)] {
    const std::int64_t begin_ns = weft::now_ns();
    task();
    timeline->add({track, name, begin_ns, weft::now_ns()});
  };
}

void begin_track(const std::string& name) {
  track = name;
}

std::string current_track() {
  return track;
}

}  // namespace standin
