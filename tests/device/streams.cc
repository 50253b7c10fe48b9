// Streams, events and graphs of the stand-in for CUDA's driver. A stream is a thread with a
// queue. Captured work becomes nodes of a graph. Each captured stream is numbered in the graph
// (tag_range). A launched graph has one thread for each of these numbers except the first, so that
// its branches run concurrently as on a device.
#include "streams.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "standin.h"
#include "timeline.h"
#include "weft_gpu_device.h"

namespace standin {
namespace {

// ---- Graphs ------------------------------------------------------------------------

struct Node {
  Task task;
  std::vector<int> after;  // numbers of the earlier nodes for which this one waits
  int tag_range;
};

// An object of the user's that lives as long as graphs refer to it.
using Kept = std::shared_ptr<void>;

struct Graph {
  std::vector<Node> nodes;
  int tag_ranges = 0;
  std::vector<Kept> kept;
};

class Launch {
 public:
  explicit Launch(const Graph& graph) : graph_(graph), ended_(graph.nodes.size()) {}

  void run() {
    std::vector<std::thread> others;
    for (int tag_range = 1; tag_range < graph_.tag_ranges; ++tag_range) {
      others.emplace_back([this, tag_range, device = device_here, track = current_track()] {
        device_here = device;
        begin_track(track + ", branch " + std::to_string(tag_range));
        run(tag_range);
      });
    }
    run(0);
    for (std::thread& one : others) one.join();
  }

 private:
  void run(int tag_range) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.tag_range != tag_range) continue;
      {
        std::unique_lock lock(mutex_);
        one_ended_.wait(lock, [&] {
          return std::all_of(node.after.begin(), node.after.end(),
                             [&](int before) { return ended_[static_cast<std::size_t>(before)]; });
        });
      }
      if (!failed_for_good()) node.task();
      const std::lock_guard lock(mutex_);
      ended_[i] = true;
      one_ended_.notify_all();
    }
  }

  const Graph& graph_;
  std::mutex mutex_;
  std::condition_variable one_ended_;
  std::vector<bool> ended_;
};

// ---- Streams -----------------------------------------------------------------------

struct Stream;

std::atomic<std::uint64_t> captures_so_far{0};

// Modes of captures and of threads: which calls are forbidden, and to which threads.
constexpr int kGlobal = 0, kRelaxed = 2;

struct Capture {
  const std::uint64_t id = ++captures_so_far;  // never used again
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Stream* origin = nullptr;
  std::map<Stream*, std::vector<int>> tips;  // nodes for which the next node of a stream waits
  std::map<Stream*, int> tag_ranges;
  std::thread::id thread;
  int mode = kGlobal;
  bool broken = false;
  std::vector<int> let_go;   // nodes that were taken out of a stream's tips
  std::vector<void*> shown;  // tips in the form in which the driver returns them

  void join(Stream* stream) {
    if (tag_ranges.emplace(stream, graph->tag_ranges).second) ++graph->tag_ranges;
  }
  void add(Stream* stream, Task task) {
    const int number = static_cast<int>(graph->nodes.size());
    graph->nodes.push_back({std::move(task), tips[stream], tag_ranges[stream]});
    tips[stream] = {number};
  }
  // Replaces the tips of a stream, or adds some. A replaced tip need not precede the origin's last
  // node. What follows in the stream gets a thread of its own, since it no longer waits for that.
  void change_tips(Stream* stream, const std::vector<int>& nodes, bool replaces) {
    auto& its = tips[stream];
    if (replaces) {
      let_go.insert(let_go.end(), its.begin(), its.end());
      its.clear();
      tag_ranges[stream] = graph->tag_ranges++;
    }
    its.insert(its.end(), nodes.begin(), nodes.end());
  }
  // Returns whether all nodes of other streams precede the last node of the origin.
  bool joined() const {
    std::vector<bool> before(graph->nodes.size());
    for (const int tip : tips.at(origin)) before[static_cast<std::size_t>(tip)] = true;
    for (const int node : let_go) before[static_cast<std::size_t>(node)] = true;
    for (std::size_t i = graph->nodes.size(); i-- > 0;) {
      if (!before[i]) continue;
      for (const int one : graph->nodes[i].after) before[static_cast<std::size_t>(one)] = true;
    }
    return std::all_of(before.begin(), before.end(), [](bool one) { return one; });
  }
};

struct Stream {
  explicit Stream(bool blocking) : is_blocking(blocking) {}

  const bool is_blocking;  // whether the default stream waits for it
  const Owner its = owner();
  std::shared_ptr<Capture> capture;  // guarded by the mutex `captures`
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> queue;
  bool busy = false, ends = false;
  std::atomic<std::uint64_t> worked{0};  // number of tasks so far, without events
  std::thread thread{[this] { run(); }};

  ~Stream() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
      changed.notify_all();
    }
    thread.join();
  }

  void push(Task task) {
    const std::lock_guard lock(mutex);
    queue.push_back(std::move(task));
    changed.notify_all();
  }
  void drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return queue.empty() && !busy; });
  }

 private:
  void run() {
    static std::atomic<int> streams_so_far{0};
    device_here = its.device;
    begin_track("stream " + std::to_string(++streams_so_far));
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return !queue.empty() || ends; });
      if (queue.empty()) return;
      Task task = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      task();
      task = nullptr;  // frees what the task keeps before the stream counts as idle
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

// An event. reached: number of the latest recording that the stream has executed. A wait is for the
// recording that was the last one when the wait was enqueued.
struct Event {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t reached = 0;
    std::uint64_t worked = 0;  // tasks of the stream before the latest recording
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  std::uint64_t recorded = 0;
  const Owner its = owner();
  std::shared_ptr<Capture> capture;  // capture in which the last recording was made
  std::vector<int> tips;
};

std::mutex captures;  // guards captures, events and the next variable
std::set<std::shared_ptr<Capture>> captures_active;
thread_local int capture_mode = kGlobal;

std::mutex streams;  // guards the next variable
// All streams except the default ones. Never destroyed, since threads may run longer than main().
auto& all_streams = *new std::map<void*, std::shared_ptr<Stream>>;

void* add_stream(bool blocking) {
  auto made = std::make_shared<Stream>(blocking);
  const std::lock_guard lock(streams);
  void* const handle = made.get();
  all_streams[handle] = std::move(made);
  return handle;
}

void remove_stream(void* handle) {
  // Destroyed after the lock, since its thread must be joined without the mutex.
  std::shared_ptr<Stream> gone;
  const std::lock_guard lock(streams);
  if (const auto found = all_streams.find(handle); found != all_streams.end()) {
    gone = std::move(found->second);
    all_streams.erase(found);
  }
}

bool is_current(const Stream& stream) {
  return stream.its.id == owner().id;
}

std::vector<std::shared_ptr<Stream>> blocking_streams() {
  const std::lock_guard lock(streams);
  std::vector<std::shared_ptr<Stream>> found;
  for (const auto& [handle, stream] : all_streams) {
    if (stream->is_blocking && is_current(*stream)) found.push_back(stream);
  }
  return found;
}

// The stream cudaStreamPerThread, of which each thread has its own.
struct OwnStream {
  void* const handle = add_stream(true);
  ~OwnStream() { remove_stream(handle); }
};

bool is_default(const void* handle) {
  return handle == nullptr || handle == reinterpret_cast<void*>(1);
}

// Returns the default stream of the current context.
Stream* default_stream() {
  static std::mutex mutex;
  static auto& all = *new std::map<std::uint64_t, std::unique_ptr<Stream>>;
  const std::lock_guard lock(mutex);
  auto& mine = all[owner().id];
  if (!mine) mine = std::make_unique<Stream>(true);
  return mine.get();
}

Stream* stream_of(void* handle) {
  if (is_default(handle)) return default_stream();
  if (handle != reinterpret_cast<void*>(2)) return static_cast<Stream*>(handle);
  thread_local std::map<std::uint64_t, OwnStream> own;
  return static_cast<Stream*>(own[owner().id].handle);
}

// Waits for the work in the default stream and in the streams for which it waits.
void drain_default() {
  stream_of(nullptr)->drain();
  for (const auto& one : blocking_streams()) one->drain();
}

// Returns whether the capture forbids unsafe calls to this thread, by the rules of
// cudaThreadExchangeStreamCaptureMode. Needs the mutex `captures`.
bool forbids(const Capture& one) {
  if (capture_mode == kRelaxed || one.mode == kRelaxed) return false;
  const bool mine = one.thread == std::this_thread::get_id();
  return mine || (capture_mode == kGlobal && one.mode == kGlobal);
}

}  // namespace

int enqueue(void* handle, Task task) {
  Stream* const stream = stream_of(handle);
  if (!is_current(*stream)) return kInvalidHandle;
  const std::lock_guard lock(captures);
  if (const auto& capture = stream->capture) {
    if (capture->broken) return kCaptureInvalidated;
    capture->add(stream, std::move(task));
    return kSuccess;
  }
  stream->push([stream, task = std::move(task)] {
    ++stream->worked;
    if (!failed_for_good()) task();
  });
  return kSuccess;
}

bool may_allocate() {
  const std::lock_guard lock(captures);
  return std::none_of(captures_active.begin(), captures_active.end(),
                      [](const auto& one) { return forbids(*one); });
}

int wait_as_default_stream() {
  {
    const std::lock_guard lock(captures);
    int code = kSuccess;
    for (const auto& one : captures_active) {
      const bool waits =
          std::any_of(one->tag_ranges.begin(), one->tag_ranges.end(), [](const auto& tag_range) {
            return tag_range.first->is_blocking && is_current(*tag_range.first);
          });
      if (!waits && !forbids(*one)) continue;
      one->broken = true;
      code = waits ? kCaptureImplicit : kCaptureUnsupported;
    }
    if (code != kSuccess) return code;
  }
  drain_default();
  return kSuccess;
}

int wait_before_copy(void* stream) {
  {
    const std::lock_guard lock(captures);
    if (stream_of(stream)->capture) {
      stream_of(stream)->capture->broken = true;
      return kCaptureUnsupported;
    }
  }
  if (!may_allocate()) return kCaptureUnsupported;
  stream_of(stream)->drain();
  return kSuccess;
}

}  // namespace standin

using namespace standin;

// ---- The driver's functions --------------------------------------------------------

DRIVER int cuStreamWriteValue64_v2(void* stream, Address to, std::uint64_t value, unsigned) {
  if (const int code = stopped_without_context("cuStreamWriteValue64")) return code;
  return enqueue(
      stream, [=] { weft_device_store(reinterpret_cast<std::uint64_t*>(reachable(to)), value); });
}

// Like the driver's with CU_STREAM_WAIT_VALUE_GEQ: the difference is compared as a signed number.
DRIVER int cuStreamWaitValue64_v2(void* stream, Address at, std::uint64_t value, unsigned flags) {
  if (const int code = stopped_without_context("cuStreamWaitValue64")) return code;
  if (flags != 0) return kInvalidValue;
  return enqueue(stream, [=] {
    const auto* const number = reinterpret_cast<std::uint64_t*>(reachable(at));
    while (static_cast<std::int64_t>(weft_device_load(number) - value) < 0) weft_device_pause();
  });
}

DRIVER int cuStreamCreate(void** made, unsigned flags) {
  if (const int code = stopped_without_context("cuStreamCreate")) return code;
  constexpr unsigned kNonBlocking = 1;
  *made = add_stream(!(flags & kNonBlocking));
  return kSuccess;
}

DRIVER int cuStreamDestroy_v2(void* stream) {
  remove_stream(stream);
  return kSuccess;
}

DRIVER int cuStreamSynchronize(void* handle) {
  if (const int code = stopped("cuStreamSynchronize")) return code;
  Stream* const stream = stream_of(handle);
  {
    const std::lock_guard lock(captures);
    if (stream->capture) {
      stream->capture->broken = true;
      return kCaptureUnsupported;
    }
  }
  stream->drain();
  if (is_default(handle)) drain_default();
  return stopped("cuStreamSynchronize");
}

DRIVER int cuEventCreate(void** made, unsigned) {
  if (const int code = stopped_without_context("cuEventCreate")) return code;
  *made = new Event;
  return kSuccess;
}

DRIVER int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}

DRIVER int cuEventRecord(void* handle, void* stream_handle) {
  if (const int code = stopped_without_context("cuEventRecord")) return code;
  auto* const event = static_cast<Event*>(handle);
  Stream* const stream = stream_of(stream_handle);
  if (event->its.id != stream->its.id) return kInvalidHandle;
  const std::lock_guard lock(captures);
  event->capture = stream->capture;
  if (stream->capture) {
    event->tips = stream->capture->tips[stream];
    return kSuccess;
  }
  const std::uint64_t number = ++event->recorded;
  stream->push([state = event->state, number, stream] {
    const std::lock_guard lock(state->mutex);
    state->worked = stream->worked;
    state->reached = std::max(state->reached, number);
    state->changed.notify_all();
  });
  return kSuccess;
}

DRIVER int cuEventQuery(void* handle) {
  if (const int code = stopped("cuEventQuery")) return code;
  if (!may_allocate()) return kCaptureUnsupported;
  auto* const event = static_cast<Event*>(handle);
  if (is_gone(event->its)) std::abort();  // with a real driver this is undefined
  const std::lock_guard lock(captures);
  const std::lock_guard state_lock(event->state->mutex);
  return event->state->reached >= event->recorded ? kSuccess : kNotReady;
}

// The stand-in knows no times: each task between the two events counts as a microsecond.
DRIVER int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  if (const int code = stopped("cuEventElapsedTime")) return code;
  std::uint64_t worked[2] = {};
  for (int i = 0; i < 2; ++i) {
    const auto& event = *static_cast<Event*>(i == 0 ? from : to);
    const std::lock_guard lock(captures);
    const std::lock_guard state_lock(event.state->mutex);
    if (event.recorded == 0) return kInvalidHandle;
    if (event.state->reached < event.recorded) return kNotReady;
    worked[i] = event.state->worked;
  }
  *milliseconds = static_cast<float>(worked[1] - worked[0]) / 1000;
  return kSuccess;
}

DRIVER int cuStreamWaitEvent(void* stream_handle, void* handle, unsigned) {
  if (const int code = stopped_without_context("cuStreamWaitEvent")) return code;
  auto* const event = static_cast<Event*>(handle);
  Stream* const stream = stream_of(stream_handle);
  const std::lock_guard lock(captures);
  if (const auto& from = event->capture) {
    if (!from->graph) return kInvalidValue;  // the capture has ended
    if (stream->capture && stream->capture != from) return kCaptureIsolation;
    stream->capture = from;
    from->join(stream);
    auto& tips = from->tips[stream];
    tips.insert(tips.end(), event->tips.begin(), event->tips.end());
    return kSuccess;
  }
  if (stream->capture) return kCaptureIsolation;
  stream->push([state = event->state, number = event->recorded] {
    std::unique_lock state_lock(state->mutex);
    state->changed.wait(state_lock, [&] { return state->reached >= number; });
  });
  return kSuccess;
}

DRIVER int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}

DRIVER int cuStreamBeginCapture_v2(void* handle, int mode) {
  if (const int code = stopped_without_context("cuStreamBeginCapture")) return code;
  Stream* const stream = stream_of(handle);
  const std::lock_guard lock(captures);
  if (stream->capture) return kInvalidValue;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->mode = mode;
  stream->capture->join(stream);
  stream->capture->tips[stream];
  captures_active.insert(stream->capture);
  return kSuccess;
}

DRIVER int cuStreamEndCapture(void* handle, void** graph) {
  Stream* const stream = stream_of(handle);
  const std::lock_guard lock(captures);
  const auto capture = stream->capture;
  *graph = nullptr;
  if (!capture || capture->origin != stream) return kInvalidValue;
  if (capture->thread != std::this_thread::get_id()) return kCaptureWrongThread;
  for (auto& [one, tag_range] : capture->tag_ranges) one->capture = nullptr;
  captures_active.erase(capture);
  const bool joined = capture->joined();
  const auto captured = std::exchange(capture->graph, nullptr);
  if (capture->broken) return kCaptureInvalidated;
  if (!joined) return kCaptureUnjoined;
  *graph = new std::shared_ptr<Graph>(captured);
  return kSuccess;
}

DRIVER int cuStreamGetCaptureInfo_v2(void* handle, int* status, std::uint64_t* id, void** graph,
                                     const void** nodes, std::size_t* count) {
  if (const int code = stopped("cuStreamGetCaptureInfo")) return code;
  Stream* const stream = stream_of(handle);
  const std::lock_guard lock(captures);
  const auto& capture = stream->capture;
  *status = !capture ? 0 : capture->broken ? 2 : 1;
  if (*status != 1) return kSuccess;
  if (id) *id = capture->id;
  if (graph) *graph = &capture->graph;
  if (!nodes) return kSuccess;
  capture->shown.clear();
  for (const int tip : capture->tips[stream]) {
    capture->shown.push_back(reinterpret_cast<void*>(std::intptr_t{tip} + 1));
  }
  *nodes = capture->shown.data(), *count = capture->shown.size();
  return kSuccess;
}

DRIVER int cuStreamUpdateCaptureDependencies(void* handle, void** nodes, std::size_t count,
                                             unsigned flags) {
  if (const int code = stopped("cuStreamUpdateCaptureDependencies")) return code;
  constexpr unsigned kSet = 1;
  Stream* const stream = stream_of(handle);
  const std::lock_guard lock(captures);
  if (!stream->capture || stream->capture->broken) return kInvalidValue;
  std::vector<int> tips;
  for (std::size_t i = 0; i < count; ++i) {
    tips.push_back(static_cast<int>(reinterpret_cast<std::intptr_t>(nodes[i]) - 1));
  }
  stream->capture->change_tips(stream, tips, flags == kSet);
  return kSuccess;
}

DRIVER int cuUserObjectCreate(void** object, void* data, void (*destroy)(void*), unsigned,
                              unsigned) {
  if (const int code = stopped("cuUserObjectCreate")) return code;
  *object = new Kept(data, destroy);
  return kSuccess;
}

DRIVER int cuUserObjectRelease(void* object, unsigned) {
  delete static_cast<Kept*>(object);
  return kSuccess;
}

DRIVER int cuGraphRetainUserObject(void* graph, void* object, unsigned, unsigned) {
  if (const int code = stopped("cuGraphRetainUserObject")) return code;
  auto* const kept = static_cast<Kept*>(object);
  (*static_cast<std::shared_ptr<Graph>*>(graph))->kept.push_back(std::move(*kept));
  delete kept;
  return kSuccess;
}

DRIVER int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  if (const int code = stopped_without_context("cuGraphInstantiate")) return code;
  *exec = new std::shared_ptr<Graph>(*static_cast<std::shared_ptr<Graph>*>(graph));
  return kSuccess;
}

// With WEFT_STANDIN_IDLE_GRAPHS graphs do nothing, so that a test sees who depends on their work.
DRIVER int cuGraphLaunch(void* exec, void* stream) {
  if (const int code = stopped_without_context("cuGraphLaunch")) return code;
  if (std::getenv("WEFT_STANDIN_IDLE_GRAPHS")) return kSuccess;
  return enqueue(stream,
                 [graph = *static_cast<std::shared_ptr<Graph>*>(exec)] { Launch(*graph).run(); });
}

DRIVER int cuGraphExecDestroy(void* exec) {
  delete static_cast<std::shared_ptr<Graph>*>(exec);
  return kSuccess;
}

DRIVER int cuGraphDestroy(void* graph) {
  delete static_cast<std::shared_ptr<Graph>*>(graph);
  return kSuccess;
}
