// Operation: a collective that streams start and wait for. The streams run copies, and kernels with
// one thread block; the agent, a host thread, carries out the collective itself. An operation is
// divided into chunks, so that one chunk is transferred while the next one is copied.
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
#include "gpu/forms.h"
#include "gpu/nccl.h"
#include "gpu/options.h"
#include "gpu/peers.h"
#include "gpu/untold.h"

namespace weft::gpu {

struct Chunk {
  std::vector<Copy> in, out;  // copies before the chunk starts, and copies after it has ended
};

// Collective: the part of an operation that the agent carries out.
class Collective {
 public:
  virtual ~Collective() = default;
  // Starts a chunk. Returns false if the chunk cannot start yet, so that the agent must try again.
  virtual Result<bool> start(std::size_t chunk) = 0;
  // Returns whether the chunk has ended.
  virtual Result<bool> test(std::size_t chunk) = 0;
  // Returns whether the next collective on the same communicator may start.
  virtual bool lets_next_start() const { return true; }
  // Progresses the collective, and returns whether nothing of it is in progress any more. It may
  // also be called after a failure.
  virtual bool is_quiet() { return true; }
  // Returns whether the collective's own copies no longer use the user's buffers, so that later
  // work in the stream may. It is called after a failure, when nothing more may start.
  virtual bool has_released_buffers() { return true; }
};

// Order: numbers the collectives of a communicator that must start in the order in which they were
// enqueued, chunk by chunk. When one of them fails, no later one may start, since it would match
// another collective on the other ranks.
class Order {
 public:
  std::uint64_t next_number() { return made_.fetch_add(1, std::memory_order_relaxed); }
  // Lets no collective start that has this number or a later one.
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

// ByKernel: a collective that kernels alone carry out (one_kernel.h). The agent only checks whether
// a rank has given it up.
struct ByKernel {
  std::shared_ptr<Peers> peers;
  int spot = 0;
  OneKernelCall call{};
  Form form{};
  // Memory for the data; nullptr if they fit into the spot.
  std::shared_ptr<SharedMemory> slots = nullptr;
  std::size_t slot_bytes = 0;  // bytes of each of the two slots there
};

// ByNccl: a collective that NCCL carries out in streams. The agent only asks NCCL for errors.
struct ByNccl {
  std::shared_ptr<NcclComm> comm;
  NcclCall call;
};

class Operation;

// OperationOwner: what operations need of the process-wide state that owns them.
class OperationOwner {
 public:
  virtual ~OperationOwner() = default;
  virtual const Options& options() const = 0;
  virtual Untold& untold() = 0;
  // Tells the agent that an operation will soon be ready.
  virtual void expect() = 0;
  virtual void count_graphs(int change) = 0;
  // Drops one reference to the operation. It calls no driver function, since graphs call it, too.
  virtual void release(Operation* operation) = 0;
};

// Holdings: the resources of one operation, which it holds until nothing uses them.
struct Holdings {
  // Flags for each chunk; a single entry if a kernel carries out the operation.
  std::vector<Channel> channels;
  Pinned pinned;
  Event event = nullptr;
};

class Operation {
 public:
  // order: the order of the communicator's collectives; nullptr if chunks may start in any order,
  // as in persistent collectives.
  Operation(OperationOwner* owner, Context* context, std::vector<Chunk> chunks,
            std::unique_ptr<Collective> collective, Holdings holdings,
            std::shared_ptr<Order> order);
  Operation(OperationOwner* owner, Context* context, ByKernel by_kernel, Holdings holdings);
  Operation(OperationOwner* owner, Context* context, ByNccl by_nccl, Holdings holdings);

  Result<bool> start(Stream stream);
  Result<bool> wait(Stream stream);
  // Starts the operation and waits for it in the stream. A collective in one kernel needs only one
  // launch for both.
  Result<bool> run(Stream stream);
  // Returns whether the operation may be started repeatedly. Any other operation is started once,
  // when it is made.
  bool is_persistent() const { return !order_; }
  // Returns the flags by which kernels of the user can start the operation and wait for it.
  Result<weft_gpu_flags> flags();
  // Returns the operation's error if it has failed, otherwise true.
  Result<bool> status() { return not_failed(); }
  bool is_by_kernel() const { return by_kernel_.peers != nullptr; }
  bool is_by_nccl() const { return by_nccl_.comm != nullptr; }
  // Gives the operation up, since another rank takes no part in it. Streams do not wait for it.
  void abandon() { fail({"another rank has failed"}, false); }
  // Returns text that says how the data are transferred.
  const std::string& path() const { return path_; }
  void set_path(std::string path) { path_ = std::move(path); }

  // Adds a reference. The user has the first one, and each graph that contains the operation has
  // one.
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  bool release() { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  friend class Agent;
  friend class Runtime;

  Result<bool> held_by_graph(Stream stream, bool* captured);
  Result<bool> enqueue_start(Stream stream);
  Result<bool> enqueue_wait(Stream stream);
  Result<bool> enqueue_phases(int phases, Stream stream);
  Result<bool> launch_phases(int phases, Stream stream);
  // The following four functions are for collectives by NCCL (operation_nccl.cc).
  Result<bool> start_by_nccl(Stream stream);
  Result<bool> branch_by_nccl(Stream stream);
  Result<bool> wait_by_nccl(Stream stream);
  Result<bool> run_by_nccl(Stream stream);
  // Returns whether an operation that the agent only watches must be given up.
  bool is_lost();
  // Says whether copies go into the collective's memory or out of it.
  enum class Way { in, out };
  // Returns the copies in the form in which a kernel makes them; nothing if the driver must make
  // them.
  std::optional<ShortCopies> by_kernel(const std::vector<Copy>& copies, Way way) const;
  Result<bool> tell_start(std::size_t chunk, Stream stream);
  Result<bool> wait_for_end(std::size_t chunk, Stream stream);
  bool notices_by_stream() const;
  bool was_given_up() const;
  bool leaves_its_spot_in_order() const;
  Result<bool> record(Stream stream);
  // Records the stream's event and returns `error`. After an error it is recorded, too, since
  // earlier work in the stream uses the operation's resources.
  Result<bool> record_and(const Result<bool>& error, bool captured, Stream stream);
  // Marks the operation as failed. is_news: false if the failure only follows from one that was
  // reported before.
  void fail(const Error& error, bool is_news = true);
  void fail_if_given_up();
  Result<bool> failed_with(const Error& error);
  Result<bool> not_failed();
  bool streams_have_passed() const;
  void give_back_events();

  OperationOwner* const owner_;
  Context* const context_;
  const std::vector<Chunk> chunks_;
  const std::unique_ptr<Collective> collective_;
  const Holdings holdings_;
  const std::shared_ptr<Order> order_;
  const std::uint64_t number_ = 0;  // position among the collectives of order_
  const ByKernel by_kernel_;
  const ByNccl by_nccl_;
  // Whether kernels can access all memory that the chunks copy.
  const bool kernels_reach_all_ = true;
  std::string path_ = "by calls of MPI's";
  // How often each chunk was started, counted while the driver writes these numbers into streams.
  // From the first capture on, kernels count instead, since the host does not see launches of
  // graphs.
  std::vector<std::uint64_t> starts_;
  bool kernels_count_ = false;
  // True once a start was enqueued, or kernels of the user may have started the operation.
  std::atomic<bool> started_{false};
  // True if a collective of kernels alone was started and waited for by two calls.
  std::atomic<bool> in_halves_{false};
  // True from a start by NCCL outside of captures until the next wait.
  std::atomic<bool> in_flight_{false};
  std::atomic<int> references_{1};
  std::atomic<bool> failed_{false};
  // leaving_: no stream will start the operation any more. left_: the agent no longer uses it.
  std::atomic<bool> leaving_{false}, left_{false};
  mutable std::mutex mutex_;  // guards the next four members
  Error why_failed_;
  bool is_told_ = false;  // whether the user was told of the error, or need not be
  // The end of the branch in which NCCL runs in the capture of the last captured start.
  CaptureTips branch_;
  // A stream in which work of the operation was enqueued, and the event recorded behind that work.
  // The event of the first stream belongs to holdings_.
  struct Used {
    Stream stream;
    std::uint64_t thread;  // number of the thread if the stream is cudaStreamPerThread; otherwise 0
    Event event;
  };
  std::vector<Used> used_;

  // The agent's state of one chunk. This and the members below are used only by the agent's thread.
  struct Progress {
    std::uint64_t seen = 0;  // number of starts that the agent has seen
    bool active = false;
  };
  std::vector<Progress> progress_;
  // Number of chunks that have started. It counts only for operations with an order, whose chunks
  // start once.
  std::size_t begun_ = 0;
  bool given_up_ = false;
};

}  // namespace weft::gpu
