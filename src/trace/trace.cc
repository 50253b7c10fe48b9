// Implements Trace: keeps each thread's events in a ring buffer, and writes them as JSON.
#include "trace/trace.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace weft {
namespace {

void append_metadata(std::string& out, const char* kind, int pid, int tid, const std::string& name,
                     const std::string& more = "") {
  char text[320];
  std::snprintf(
      text, sizeof text,
      "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%.150s\"%s}}", kind,
      pid, tid, name.c_str(), more.c_str());
  if (!out.empty()) out += ",\n";
  out += text;
}

void append_span(std::string& out, const char* name, int pid, int tid, std::int64_t begin_ns,
                 std::int64_t end_ns) {
  char text[256];
  std::snprintf(text, sizeof text,
                ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
                name, pid, tid, static_cast<double>(begin_ns) / 1e3,
                static_cast<double>(end_ns - begin_ns) / 1e3);
  out += text;
}

}  // namespace

Trace::Track::Track(std::string name, bool gaps_are_computing)
    : name_(std::move(name)), gaps_are_computing_(gaps_are_computing) {}

void Trace::Track::span(const char* name, std::int64_t begin_ns, std::int64_t end_ns) {
  if (ring_.size() < kCapacity)
    ring_.push_back({name, begin_ns, end_ns});
  else
    ring_[recorded_ % kCapacity] = {name, begin_ns, end_ns};
  ++recorded_;
}

void Trace::Track::change(const char* name, std::int64_t at_ns) {
  if (current_ == name) return;
  if (current_) span(current_, current_since_ns_, at_ns);
  current_ = name;
  current_since_ns_ = at_ns;
}

Trace::Track* Trace::add_track(std::string name, bool gaps_are_computing) {
  const std::lock_guard lock(mutex_);
  tracks_.push_back(std::make_unique<Track>(std::move(name), gaps_are_computing));
  return tracks_.back().get();
}

std::string Trace::events_json(int rank, const std::string& host, std::int64_t offset_ns,
                               std::int64_t end_ns) const {
  std::string out;
  // `offset_ns`, by which the times were shifted to rank 0's clock, is also written to the file.
  // The advisor compares the clocks more closely, and subtracts it again.
  append_metadata(out, "process_name", rank, 0, "rank " + std::to_string(rank) + " (" + host + ")",
                  ",\"offset_ns\":" + std::to_string(offset_ns));
  const std::lock_guard lock(mutex_);
  for (std::size_t tid = 0; tid < tracks_.size(); ++tid) {
    const Track& track = *tracks_[tid];
    const auto id = static_cast<int>(tid);
    std::string name = track.name_;
    if (track.recorded_ > Track::kCapacity)
      name += " (first " + std::to_string(track.recorded_ - Track::kCapacity) + " events dropped)";
    append_metadata(out, "thread_name", rank, id, name);
    auto events = track.ring_;
    if (track.current_) events.push_back({track.current_, track.current_since_ns_, end_ns});
    std::sort(events.begin(), events.end(),
              [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    std::int64_t free_from = events.empty() ? 0 : events.front().begin_ns;
    for (const auto& event : events) {
      if (track.gaps_are_computing_ && event.begin_ns > free_from)
        append_span(out, "computing", rank, id, free_from + offset_ns, event.begin_ns + offset_ns);
      append_span(out, event.name, rank, id, event.begin_ns + offset_ns, event.end_ns + offset_ns);
      free_from = std::max(free_from, event.end_ns);
    }
  }
  return out;
}

}  // namespace weft
