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
  // The first call starts the thread.
  void add(Operation* operation);
  // Watches an operation that kernels alone carry out until forget() is called. It is given up when
  // another rank gives it up, and at the end of the agent.
  void keep(Operation* operation);
  void forget(Operation* operation);
  // Announces that an operation will soon be ready, so that the agent does not sleep.
  void expect() { expected_.store(true, std::memory_order_relaxed); }
  // Counts the graphs that contain a collective; more: +1 or -1. Launches of graphs are not
  // announced to this process.
  void count_graphs(int more) { graphs_.fetch_add(more, std::memory_order_relaxed); }
  bool has_graphs() const { return graphs_.load(std::memory_order_relaxed) > 0; }
  // Returns how long the agent sleeps between two polls once it has been idle for the time `idle`;
  // 0: it does not sleep. attentive: an operation is in progress, or may start unannounced.
  static std::chrono::microseconds nap(std::chrono::microseconds idle, bool attentive);
  // Ends the thread. Gives up operations that have not ended within `patience`, so that no stream
  // waits forever, and returns their number.
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
  Clock::time_point latest_{};  // deadline of operations in progress, if stopping_ is true
  int not_ended_ = 0;           // number of operations given up at the end
  std::atomic<bool> expected_{false};
  std::atomic<int> graphs_{0};
  Clock::time_point next_look_{};    // time of the next check of kept_; for the agent's thread only
  std::vector<Operation*> watched_;  // operations in progress; for the agent's thread only
  bool under_way_ = false;  // true if an MPI call is in progress; for the agent's thread only
  // The orders whose next operation is not ready, found during one scan(); for the agent's thread
  // only.
  std::vector<const Order*> not_ready_;
  std::thread thread_;
};

}  // namespace weft::gpu
