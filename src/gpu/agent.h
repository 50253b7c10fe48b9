// Agent: the thread that carries out collectives for CUDA streams: it sees that data are ready,
// starts the collective, progresses it, and tells the device when it has ended. It calls the CUDA
// driver in three cases only: to make a device current if the MPI library takes device memory; to
// copy data that are too long for Weft's pinned memory (relay.h); and to ask at the end whether
// streams have completed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/operation.h"

namespace weft::gpu {

class Agent {
 public:
  using Clock = std::chrono::steady_clock;

  Agent() = default;
  ~Agent() { stop(); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Watches an operation until no stream will start it any more and nothing of it is in progress.
  // The first call starts the agent's thread.
  void add(Operation* operation);
  // Watches an operation that kernels alone carry out, until forget() is called for it. The agent
  // gives it up when another rank gives it up, and when the agent ends.
  void keep(Operation* operation);
  void forget(Operation* operation);
  // Announces that an operation will soon be ready, so that the agent does not sleep.
  void expect() { expected_.store(true, std::memory_order_relaxed); }
  // Counts the graphs that contain a collective, whose launches are not announced to this process.
  // more: +1 or -1.
  void count_graphs(int more) { graphs_.fetch_add(more, std::memory_order_relaxed); }
  bool has_graphs() const { return graphs_.load(std::memory_order_relaxed) > 0; }
  // Returns how long the agent sleeps between two polls if there has been no event for the time
  // `idle`; 0 if it does not sleep. attentive: whether an operation is in progress, or may start
  // unannounced.
  static std::chrono::microseconds nap(std::chrono::microseconds idle, bool attentive);
  // Ends the agent's thread. Operations that have not ended within `patience` are given up, so that
  // no stream waits forever. Returns their number.
  int stop(std::chrono::milliseconds patience = {});

 private:
  void begin();
  void run();
  void end();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void look_at_kept(Clock::time_point now);
  bool scan();
  bool advance(Operation& operation, bool* ahead_of_others);
  bool advance_chunk(Operation& operation, std::size_t chunk, bool may_start);
  void end_what_was_enqueued();
  static bool has_passed(const Operation& operation);
  static void give_up(Operation& operation);
  static bool idle(Operation& operation);

  std::mutex mutex_;  // guards the next five members
  std::condition_variable called_;
  std::vector<Operation*> arrived_;
  std::vector<Operation*> kept_;
  bool stopping_ = false;
  // If stopping_ is true: time at which operations in progress are given up.
  Clock::time_point latest_{};
  int not_ended_ = 0;  // number of operations that were given up at the end
  std::atomic<bool> expected_{false};
  std::atomic<int> graphs_{0};
  // Time of the next check of kept_; used only by the agent's thread.
  Clock::time_point next_look_{};
  std::vector<Operation*> watched_;  // operations in progress; used only by the agent's thread
  bool under_way_ = false;  // whether an MPI call is in progress; used only by the agent's thread
  // The communicators' orders (Order) whose next operation is not ready, found during one scan().
  // Used only by the agent's thread.
  std::vector<const Order*> not_ready_;
  std::thread thread_;
};

}  // namespace weft::gpu
