// One collective that streams start and wait for. The streams carry copies and kernels of one
// block; the agent, a thread of the processor's, carries the collective itself out. Why in parts:
// a part travels while the next one is copied.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpu/context.h"
#include "gpu/peers.h"

namespace weft::gpu {

struct Part {
  std::vector<Copy> in, out;  // before it starts, and after it has ended
};

// What the agent carries out.
class Collective {
 public:
  virtual ~Collective() = default;
  // False: not yet, ask again.
  virtual Result<bool> start(std::size_t part) = 0;
  // Whether it has ended.
  virtual Result<bool> test(std::size_t part) = 0;
  // Whether the next one in its order may start.
  virtual bool lets_next_start() const { return true; }
  // Whether nothing of it is under way, also where it has failed. Helps.
  virtual bool is_quiet() { return true; }
  // It has failed: it begins nothing more. Whether it has let go of the buffers, as far as it
  // copies them itself; what comes next in the stream may then use them.
  virtual bool lets_go_of_buffers() { return true; }
};

// Collectives that must start in the order in which they were enqueued, part by part, and are
// numbered. Broken: one of them failed, so that what comes next would meet another collective of
// the other ranks.
class Order {
 public:
  std::uint64_t next_number() { return made_.fetch_add(1, std::memory_order_relaxed); }
  // From this number on nothing starts any more.
  void break_from(std::uint64_t number) {
    std::uint64_t before = broken_from_.load(std::memory_order_relaxed);
    while (number < before && !broken_from_.compare_exchange_weak(before, number)) {
    }
  }
  void break_next() { break_from(made_.load(std::memory_order_relaxed)); }
  bool is_broken_for(std::uint64_t number) const {
    return number >= broken_from_.load(std::memory_order_acquire);
  }
  bool is_broken() const { return is_broken_for(~std::uint64_t{} - 1); }

 private:
  std::atomic<std::uint64_t> made_{0}, broken_from_{~std::uint64_t{}};
};

// A collective that kernels alone carry out (one_kernel.h). The agent only sees whether a rank has
// given it up.
struct ByKernel {
  std::shared_ptr<Peers> peers;
  int spot = 0;
  OneKernelCall call;
};

class Runtime;

// What one operation holds until nothing uses it.
struct Holdings {
  std::vector<Channel> channels;  // one for each part; of one that a kernel carries out: one
  Pinned pinned;
  Event event = nullptr;
};

class Operation {
 public:
  // order: nullptr where parts may start in any order, as persistent collectives may.
  Operation(Runtime* runtime, Context* context, std::vector<Part> parts,
            std::unique_ptr<Collective> collective, Holdings holdings,
            std::shared_ptr<Order> order);
  Operation(Runtime* runtime, Context* context, ByKernel by_kernel, Holdings holdings);

  Result<bool> start(Stream stream);
  Result<bool> wait(Stream stream);
  // Both at once: of one that a kernel carries out, one kernel.
  Result<bool> run(Stream stream);
  // One that is not persistent is started once, by whoever made it.
  bool is_persistent() const { return !order_; }
  // For kernels that start it themselves.
  Result<weft_gpu_flags> flags();
  // Whether it has failed so far.
  Result<bool> status() { return not_failed(); }
  bool is_by_kernel() const { return by_kernel_.peers != nullptr; }
  // How it travels, in a sentence.
  const std::string& path() const { return path_; }
  void set_path(std::string path) { path_ = std::move(path); }

  // The user's reference is the first, each graph has its own.
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  bool release() { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  friend class Agent;
  friend class Runtime;

  Result<bool> held_by_graph(Stream stream, bool* captured);
  Result<bool> enqueue_start(Stream stream);
  Result<bool> enqueue_wait(Stream stream);
  Result<bool> enqueue_phases(int phases, Stream stream);
  // What the kernel copies that tells of the start, or waits; none: the driver copies.
  enum class Way { in, out };
  std::optional<ShortCopies> by_kernel(const std::vector<Copy>& copies, Way way) const;
  Result<bool> tell_start(std::size_t part, Stream stream);
  Result<bool> wait_for_end(std::size_t part, Stream stream);
  bool notices_by_stream() const;
  bool was_given_up() const;
  bool leaves_its_spot_in_order() const;
  Result<bool> record(Stream stream);
  // What was enqueued before an error uses what is held, too.
  Result<bool> record_and(const Result<bool>& error, bool captured, Stream stream);
  // News: nothing has failed before that it follows from.
  void fail(const Error& error, bool is_news = true);
  void fail_if_given_up();
  Result<bool> failed_with(const Error& error);
  Result<bool> not_failed();
  bool streams_have_passed() const;
  void give_back_events();

  Runtime* const runtime_;
  Context* const context_;
  const std::vector<Part> parts_;
  const std::unique_ptr<Collective> collective_;
  const Holdings holdings_;
  const std::shared_ptr<Order> order_;
  const std::uint64_t number_ = 0;  // in the order
  const ByKernel by_kernel_;
  const bool kernels_reach_all_ = true;  // what the parts copy
  std::string path_ = "by calls of MPI's";
  // Where the driver writes numbers into streams: how often each part was started. From the first
  // capture on, kernels count instead: how often a graph is launched is not known here.
  std::vector<std::uint64_t> starts_;
  bool kernels_count_ = false;
  std::atomic<bool> started_{false};    // once at least, or a kernel of the user's may have
  std::atomic<bool> in_halves_{false};  // of one kernel: publishing apart from the rest
  std::atomic<int> references_{1};
  std::atomic<bool> failed_{false};
  std::atomic<bool> leaving_{false}, left_{false};  // no stream will start it; the agent knows
  mutable std::mutex mutex_;                        // guards the next three
  Error why_failed_;
  bool is_told_ = false;  // the user has got the error, or needs not
  // A stream that has been given work, and the last event recorded there; the first one's is held.
  struct Used {
    Stream stream;
    std::uint64_t thread;  // whose, where each has a stream by this name; else 0
    Event event;
  };
  std::vector<Used> used_;

  // The agent's.
  struct Progress {
    std::uint64_t seen = 0;  // this many starts
    bool active = false;
  };
  std::vector<Progress> progress_;
  std::size_t begun_ = 0;  // starts of parts: of use where there is an order, and one of each
  bool given_up_ = false;
};

}  // namespace weft::gpu
