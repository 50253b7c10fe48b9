// Streams, events, copies and graphs of the stand-in for CUDA's driver. A stream is a thread with a
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
      others.emplace_back([this, tag_range, device = device_here] {
        device_here = device;
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

// Modes of captures and of threads: which calls are forbidden, and to which threads.
constexpr int kGlobal = 0, kRelaxed = 2;

struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Stream* origin = nullptr;
  std::map<Stream*, std::vector<int>> tips;  // nodes for which the next node of a stream waits
  std::map<Stream*, int> tag_ranges;
  std::thread::id thread;
  int mode = kGlobal;
  bool broken = false;

  void join(Stream* stream) {
    if (tag_ranges.emplace(stream, graph->tag_ranges).second) ++graph->tag_ranges;
  }
  void add(Stream* stream, Task task) {
    const int number = static_cast<int>(graph->nodes.size());
    graph->nodes.push_back({std::move(task), tips[stream], tag_ranges[stream]});
    tips[stream] = {number};
  }
  // Returns whether all nodes of other streams precede the last node of the origin.
  bool joined() const {
    std::vector<bool> before(graph->nodes.size());
    for (const int tip : tips.at(origin)) before[static_cast<std::size_t>(tip)] = true;
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
    device_here = its.device;
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
  stream->push([task = std::move(task)] {
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

}  // namespace standin

using namespace standin;

// ---- The driver's functions --------------------------------------------------------

// Copies from or to pageable memory. The caller waits until the copy is complete.
static int copy_pageable(Address to, Address from, std::size_t bytes, void* stream) {
  if (!may_copy_now(to, from, bytes)) return kInvalidValue;
  {
    const std::lock_guard lock(captures);
    if (stream_of(stream)->capture) {
      stream_of(stream)->capture->broken = true;
      return kCaptureUnsupported;
    }
  }
  if (!may_allocate()) return kCaptureUnsupported;
  stream_of(stream)->drain();
  std::memmove(reachable(to), reachable(from), bytes);
  return kSuccess;
}

DRIVER int cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  if (const int code = stopped_without_context("cuMemcpyAsync")) return code;
  for (const Address one : {to, from}) {
    if (is_block_of_device(one, bytes) || is_pinned(one, bytes)) continue;
    const bool pageable = is_unknown(one) && !is_pinned(one, 1);
    return pageable ? copy_pageable(to, from, bytes, stream) : kInvalidValue;
  }
  return enqueue(stream, [=] {
    wait_while_copies_are_held();
    if (may_run({{to, bytes}, {from, bytes}})) {
      std::memcpy(reachable(to), reachable(from), bytes);
    }
  });
}

// Declared as in cuda.h.
struct CUDA_MEMCPY2D {
  std::size_t from_x, from_y;
  unsigned from_type;
  const void* from_host;
  Address from;
  void* from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  unsigned to_type;
  void* to_host;
  Address to;
  void* to_array;
  std::size_t to_pitch;
  std::size_t bytes, rows;
};

DRIVER int cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* given, void* stream) {
  if (const int code = stopped_without_context("cuMemcpy2DAsync")) return code;
  constexpr unsigned kUnified = 4;
  constexpr std::size_t kMostPitch = 0x7fffffff;
  const CUDA_MEMCPY2D c = *given;
  if (c.rows == 0 || c.from_type != kUnified || c.to_type != kUnified) return kInvalidValue;
  if (c.from_x || c.from_y || c.to_x || c.to_y) return kInvalidValue;
  for (const std::size_t pitch : {c.from_pitch, c.to_pitch}) {
    if (pitch < c.bytes || pitch > kMostPitch) return kInvalidValue;
  }
  const std::vector<Range> ranges = {{c.from, (c.rows - 1) * c.from_pitch + c.bytes},
                                     {c.to, (c.rows - 1) * c.to_pitch + c.bytes}};
  for (const Range& one : ranges) {
    if (!is_block_of_device(one.begin, one.bytes) && !is_pinned(one.begin, one.bytes)) {
      return kInvalidValue;
    }
  }
  return enqueue(stream, [=] {
    if (!may_run(ranges)) return;
    for (std::size_t row = 0; row < c.rows; ++row) {
      std::memcpy(reachable(c.to + row * c.to_pitch), reachable(c.from + row * c.from_pitch),
                  c.bytes);
    }
  });
}

DRIVER int cuMemsetD8Async(Address to, unsigned char with, std::size_t bytes, void* stream) {
  if (const int code = stopped_without_context("cuMemsetD8Async")) return code;
  if (!is_block_of_device(to, bytes)) return kInvalidValue;
  return enqueue(stream, [=] {
    if (may_run({{to, bytes}})) std::memset(reachable(to), with, bytes);
  });
}

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
  stream->push([state = event->state, number] {
    const std::lock_guard lock(state->mutex);
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
                                     const void**, std::size_t*) {
  if (const int code = stopped("cuStreamGetCaptureInfo")) return code;
  Stream* const stream = stream_of(handle);
  const std::lock_guard lock(captures);
  const auto& capture = stream->capture;
  *status = !capture ? 0 : capture->broken ? 2 : 1;
  if (*status != 1) return kSuccess;
  if (id) *id = reinterpret_cast<std::uint64_t>(capture.get());
  if (graph) *graph = &capture->graph;
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
